//! Default identity of a candidate.

use kubewright_core::Random;

/// The host name, an underscore and a random UUID, as in controller-runtime.
pub(super) fn default_identity(random: &Random) -> String {
    format!("{}_{}", host_name(), random.uuid())
}

/// The name of the machine or Pod: `HOSTNAME`, which the kubelet sets, or what the kernel has.
fn host_name() -> String {
    let from_file = |path| std::fs::read_to_string(path).ok();
    std::env::var("HOSTNAME")
        .ok()
        .or_else(|| from_file("/proc/sys/kernel/hostname"))
        .or_else(|| from_file("/etc/hostname"))
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_identity_is_the_host_name_and_a_random_uuid() {
        let random = Random::seeded(1);
        let (one, two) = (default_identity(&random), default_identity(&random));
        assert_ne!(one, two);
        let (host, uuid) = one.rsplit_once('_').unwrap();
        assert!(!host.is_empty());
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
        assert_eq!(uuid.as_bytes()[14], b'4', "{uuid}");
    }
}
