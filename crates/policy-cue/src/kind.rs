//! Sets of kinds of values.

use std::{
    fmt,
    ops::{BitAnd, BitOr},
};

/// The possible kinds of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KindSet(u16);

const NAMES: &[(KindSet, &str)] = &[
    (KindSet::NULL, "null"),
    (KindSet::BOOL, "bool"),
    (KindSet::NUMBER, "number"),
    (KindSet::INTEGER, "int"),
    (KindSet::FLOAT, "float"),
    (KindSet::STRING, "string"),
    (KindSet::BYTES, "bytes"),
    (KindSet::STRUCT, "struct"),
    (KindSet::LIST, "list"),
];

impl KindSet {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOL: Self = Self(1 << 1);
    pub(crate) const INTEGER: Self = Self(1 << 2);
    pub(crate) const FLOAT: Self = Self(1 << 3);
    pub(crate) const NUMBER: Self = Self(Self::INTEGER.0 | Self::FLOAT.0);
    pub(crate) const STRING: Self = Self(1 << 4);
    pub(crate) const BYTES: Self = Self(1 << 5);
    pub(crate) const STRUCT: Self = Self(1 << 6);
    pub(crate) const LIST: Self = Self(1 << 7);
    /// The kinds that have a length.
    pub(crate) const MEASURED: Self = Self(Self::STRING.0 | Self::BYTES.0 | Self::STRUCT.0 | Self::LIST.0);
    pub(crate) const TOP: Self = Self((1 << 8) - 1);

    pub(crate) fn is_empty(self) -> bool {
        self == Self::NONE
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        self & other == other
    }

    pub(crate) fn intersects(self, other: Self) -> bool {
        !(self & other).is_empty()
    }
}

impl BitAnd for KindSet {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for KindSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for KindSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::TOP {
            return formatter.write_str("_");
        }
        let mut rest = *self;
        let mut separator = "";
        for (kind, name) in NAMES {
            if rest.contains(*kind) {
                write!(formatter, "{separator}{name}")?;
                separator = " or ";
                rest = Self(rest.0 & !kind.0);
            }
        }
        Ok(())
    }
}
