//! Table of function signatures.
//!
//! A line is `target@name(arguments) result`, without `target@` for a global function; capital letters are
//! type parameters.

use std::{collections::BTreeMap, sync::LazyLock};

use super::types::Type;

#[derive(Debug, Clone)]
pub(super) struct Signature {
    pub(super) member: bool,
    /// Argument types; the target first, if any.
    pub(super) args: Vec<Type>,
    pub(super) result: Type,
}

/// Type of `authorizer`.
pub(super) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
/// Type of `authorizer.requestResource`.
pub(super) const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";

const OPERATORS: &str = "
_&&_(bool,bool) bool
_||_(bool,bool) bool
!_(bool) bool
-_(int) int
-_(double) double
_?_:_(bool,A,A) A
_==_(A,A) bool
_!=_(A,A) bool
_+_(int,int) int
_+_(uint,uint) uint
_+_(double,double) double
_+_(string,string) string
_+_(bytes,bytes) bytes
_+_(list(A),list(A)) list(A)
_+_(timestamp,duration) timestamp
_+_(duration,timestamp) timestamp
_+_(duration,duration) duration
_-_(int,int) int
_-_(uint,uint) uint
_-_(double,double) double
_-_(timestamp,timestamp) duration
_-_(timestamp,duration) timestamp
_-_(duration,duration) duration
_*_(int,int) int
_*_(uint,uint) uint
_*_(double,double) double
_/_(int,int) int
_/_(uint,uint) uint
_/_(double,double) double
_%_(int,int) int
_%_(uint,uint) uint
_[_](list(A),int) A
_[_](map(A,B),A) B
_[?_](list(A),int) optional(A)
_[?_](map(A,B),A) optional(B)
_[?_](optional(list(A)),int) optional(A)
_[?_](optional(map(A,B)),A) optional(B)
_[_](optional(list(A)),int) optional(A)
_[_](optional(map(A,B)),A) optional(B)
@in(A,list(A)) bool
@in(A,map(A,B)) bool";

const FUNCTIONS: &str = "
type(A) type
dyn(A) dyn
bool(bool) bool
bool(string) bool
int(int) int
int(uint) int
int(double) int
int(string) int
int(timestamp) int
uint(uint) uint
uint(int) uint
uint(double) uint
uint(string) uint
double(double) double
double(int) double
double(uint) double
double(string) double
string(string) string
string(bool) string
string(int) string
string(uint) string
string(double) string
string(bytes) string
string(timestamp) string
string(duration) string
string(ip) string
string(cidr) string
bytes(bytes) bytes
bytes(string) bytes
timestamp(timestamp) timestamp
timestamp(string) timestamp
timestamp(int) timestamp
duration(duration) duration
duration(string) duration
matches(string,string) bool
string@matches(string) bool
string@contains(string) bool
string@startsWith(string) bool
string@endsWith(string) bool
string@charAt(int) string
string@indexOf(string) int
string@indexOf(string,int) int
string@lastIndexOf(string) int
string@lastIndexOf(string,int) int
string@lowerAscii() string
string@upperAscii() string
string@trim() string
string@replace(string,string) string
string@replace(string,string,int) string
string@split(string) list(string)
string@split(string,int) list(string)
string@substring(int) string
string@substring(int,int) string
string@format(list(dyn)) string
strings.quote(string) string
list(string)@join() string
list(string)@join(string) string
string@find(string) string
string@findAll(string) list(string)
string@findAll(string,int) list(string)
list(A)@isSorted() bool
list(A)@sum() A
list(A)@min() A
list(A)@max() A
list(A)@indexOf(A) int
list(A)@lastIndexOf(A) int
list(A)@includes(A) bool
list(A)@slice(int,int) list(A)
list(A)@distinct() list(A)
list(A)@sort() list(A)
list(A)@reverse() list(A)
list(list(A))@flatten() list(A)
list(dyn)@flatten() list(dyn)
list(dyn)@flatten(int) list(dyn)
list(A)@first() optional(A)
list(A)@last() optional(A)
lists.range(int) list(int)
sets.contains(list(A),list(A)) bool
sets.equivalent(list(A),list(A)) bool
sets.intersects(list(A),list(A)) bool
optional.of(A) optional(A)
optional.ofNonZeroValue(A) optional(A)
optional.none() optional(A)
optional(A)@hasValue() bool
optional(A)@value() A
optional(A)@or(optional(A)) optional(A)
optional(A)@orValue(A) A
url(string) url
isURL(string) bool
url@getScheme() string
url@getHost() string
url@getHostname() string
url@getPort() string
url@getEscapedPath() string
url@getQuery() map(string,list(string))
ip(string) ip
isIP(string) bool
ip.isCanonical(string) bool
ip@family() int
ip@isUnspecified() bool
ip@isLoopback() bool
ip@isLinkLocalMulticast() bool
ip@isLinkLocalUnicast() bool
ip@isGlobalUnicast() bool
cidr(string) cidr
isCIDR(string) bool
cidr@containsIP(ip) bool
cidr@containsIP(string) bool
cidr@containsCIDR(cidr) bool
cidr@containsCIDR(string) bool
cidr@ip() ip
cidr@masked() cidr
cidr@prefixLength() int
quantity(string) quantity
isQuantity(string) bool
quantity@sign() int
quantity@isInteger() bool
quantity@asInteger() int
quantity@asApproximateFloat() double
quantity@isLessThan(quantity) bool
quantity@isGreaterThan(quantity) bool
quantity@compareTo(quantity) int
quantity@add(quantity) quantity
quantity@add(int) quantity
quantity@sub(quantity) quantity
quantity@sub(int) quantity
semver(string) semver
semver(string,bool) semver
isSemver(string) bool
isSemver(string,bool) bool
semver@isLessThan(semver) bool
semver@isGreaterThan(semver) bool
semver@compareTo(semver) int
semver@major() int
semver@minor() int
semver@patch() int
format.named(string) optional(format)
jsonpatch.escapeKey(string) string
authorizer@path(string) pathcheck
authorizer@group(string) groupcheck
authorizer@serviceAccount(string,string) authorizer
groupcheck@resource(string) resourcecheck
resourcecheck@subresource(string) resourcecheck
resourcecheck@namespace(string) resourcecheck
resourcecheck@name(string) resourcecheck
resourcecheck@fieldSelector(string) resourcecheck
resourcecheck@labelSelector(string) resourcecheck
pathcheck@check(string) decision
resourcecheck@check(string) decision
decision@allowed() bool
decision@errored() bool
decision@error() string
decision@reason() string
format@validate(string) optional(list(string))";

const GETTERS: [&str; 10] = [
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
];

/// Named formats; each has a function `format.NAME()`.
pub(super) const FORMATS: [&str; 11] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "labelValue",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "uri",
    "uuid",
    "byte",
];

static TABLE: LazyLock<BTreeMap<String, Vec<Signature>>> = LazyLock::new(|| {
    let mut lines: Vec<String> = OPERATORS.lines().chain(FUNCTIONS.lines()).map(str::to_owned).collect();
    for of in ["string", "bytes", "list(A)", "map(A,B)"] {
        lines.push(format!("size({of}) int"));
        lines.push(format!("{of}@size() int"));
    }
    for operator in ["<", "<=", ">", ">="] {
        for of in ["bool", "string", "bytes", "timestamp", "duration"] {
            lines.push(format!("_{operator}_({of},{of}) bool"));
        }
        for left in ["int", "uint", "double"] {
            lines.extend(["int", "uint", "double"].map(|right| format!("_{operator}_({left},{right}) bool")));
        }
    }
    for getter in GETTERS {
        lines.push(format!("timestamp@{getter}() int"));
        lines.push(format!("timestamp@{getter}(string) int"));
    }
    lines.extend(GETTERS[6..].iter().map(|getter| format!("duration@{getter}() int")));
    lines.extend(FORMATS.map(|format| format!("format.{format}() format")));
    lines.extend(["date", "datetime"].map(|format| format!("format.{format}() format")));
    let mut table: BTreeMap<String, Vec<Signature>> = BTreeMap::new();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let (name, signature) = parse(line);
        table.entry(name).or_default().push(signature);
    }
    table
});

pub(super) fn lookup(name: &str) -> &'static [Signature] {
    TABLE.get(name).map(Vec::as_slice).unwrap_or_default()
}

fn parse(line: &str) -> (String, Signature) {
    let (head, result) = line.rsplit_once(' ').unwrap_or((line, "dyn"));
    let (target, call) = match head.split_once('@') {
        Some((target, call)) if !target.is_empty() => (Some(target), call),
        _ => (None, head),
    };
    let open = call.find('(').unwrap_or(call.len());
    let inner = call.get(open + 1..call.len().saturating_sub(1)).unwrap_or_default();
    let mut args: Vec<Type> = target.map(read).into_iter().collect();
    args.extend(split(inner).into_iter().map(read));
    let name = call[..open].to_owned();
    (name, Signature { member: target.is_some(), args, result: read(result) })
}

fn split(text: &str) -> Vec<&str> {
    let (mut out, mut depth, mut from) = (Vec::new(), 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    if from < text.len() {
        out.push(&text[from..]);
    }
    out
}

fn read(text: &str) -> Type {
    let inner = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(of) = inner("list") {
        return Type::List(Box::new(read(of)));
    }
    if let Some(of) = inner("optional") {
        return read(of).optional();
    }
    if let Some([key, value]) = inner("map").map(split).as_deref() {
        return Type::Map(Box::new(read(key)), Box::new(read(value)));
    }
    match text {
        "A" => Type::Param(0),
        "B" => Type::Param(1),
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "type" => Type::Kind,
        "url" => Type::Opaque("kubernetes.URL"),
        "ip" => Type::Opaque("net.IP"),
        "cidr" => Type::Opaque("net.CIDR"),
        "quantity" => Type::Opaque("kubernetes.Quantity"),
        "semver" => Type::Opaque("kubernetes.Semver"),
        "format" => Type::Opaque("kubernetes.NamedFormat"),
        "authorizer" => Type::Opaque(AUTHORIZER),
        "pathcheck" => Type::Opaque("kubernetes.authorization.PathCheck"),
        "groupcheck" => Type::Opaque("kubernetes.authorization.GroupCheck"),
        "resourcecheck" => Type::Opaque(RESOURCE_CHECK),
        "decision" => Type::Opaque("kubernetes.authorization.Decision"),
        _ => Type::Dyn,
    }
}
