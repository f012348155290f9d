//! The available functions.

use kube_cel::cel::common::ast::operators;

/// Functions of CEL and of Kubernetes' libraries, with the names in the Rust libraries.
const FUNCTIONS: &str = "\
    contains size max min startsWith endsWith string bytes double int uint matches duration timestamp type dyn bool \
    getFullYear getMonth getDayOfYear getDayOfMonth getDate getDayOfWeek getHours getMinutes getSeconds getMilliseconds \
    optional.none optional.of optional.ofNonZeroValue value hasValue or orValue \
    add asApproximateFloat asInteger base64.decode base64.encode charAt cidr compareTo containsCIDR containsIP distinct family find \
    findAll first flatten format format.byte format.date format.datetime format.dns1035Label format.dns1035LabelPrefix \
    format.dns1123Label format.dns1123LabelPrefix format.dns1123Subdomain format.dns1123SubdomainPrefix format.labelValue format.named \
    format.qualifiedName format.uri format.uuid getEscapedPath getHost getHostname getPort getQuery getScheme indexOf ip ip.isCanonical \
    isCIDR isGlobalUnicast isGreaterThan isIP isInteger isLessThan isLinkLocalMulticast isLinkLocalUnicast isLoopback isQuantity \
    isSemver isSorted isURL isUnspecified join jsonpatch.escapeKey last lastIndexOf lists.range lowerAscii major masked math.abs \
    math.bitAnd math.bitNot math.bitOr math.bitShiftLeft math.bitShiftRight math.bitXor math.ceil math.floor math.greatest \
    math.isFinite math.isInf math.isNaN math.least math.round math.sign math.sqrt math.trunc minor patch prefixLength quantity \
    replace reverse semver sets.contains sets.equivalent sets.intersects sign slice sort split strings.quote sub substring sum trim \
    upperAscii url validate";

/// Operators, which are functions as well.
const OPERATORS: [&str; 18] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::SUBSTRACT,
    operators::ADD,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER_EQUALS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::LESS,
    operators::NEGATE,
    operators::INDEX,
    operators::IN,
];

/// Reports whether a function exists.
pub(super) fn is_known(name: &str) -> bool {
    OPERATORS.contains(&name)
        || name == operators::NOT_STRICTLY_FALSE
        || FUNCTIONS.split_whitespace().any(|known| known == name)
}

/// Reports whether a name is a function's namespace, which is not a variable.
pub(super) fn is_namespace(name: &str) -> bool {
    FUNCTIONS.split_whitespace().any(|known| {
        known
            .split_once('.')
            .is_some_and(|(namespace, _)| namespace == name)
    })
}
