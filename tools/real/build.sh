#!/bin/sh
# Builds real peers (etcd, kube-apiserver, kube-controller-manager, kubectl; or those named) from their published Go
# modules into a cache folder outside the repository, once, and prints the folder.
set -eu
version=v1.37.0
folder=${KUBEWRIGHT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubewright}/$version
if [ "${1:-}" = --where ]; then
	echo "$folder"
	exit
fi
cd "$(dirname "$0")"
mkdir -p "$folder"
stamp="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
for program in ${*:-etcd kubectl kube-apiserver kube-controller-manager}; do
	if [ ! -x "$folder/$program" ]; then
		if ! command -v go >/dev/null; then
			echo "$folder has no $program, and there is no Go to build it with: install Go (https://go.dev/dl)" >&2
			exit 1
		fi
		echo "building $program $version: this takes minutes, once" >&2
		go build -trimpath -ldflags "-s -w $stamp" -o "$folder/$program.new" "./$program"
		mv "$folder/$program.new" "$folder/$program"
	fi
done
echo "$folder"
