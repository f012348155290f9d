//! Comparison of an existing install with a bundle.

use windlass_object::ObjectKey;

/// The objects of an install, by whether the bundle has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdoptionComparison {
    /// Objects in both: the bundle takes them over.
    pub adopted: Vec<ObjectKey>,
    /// Objects only in the install: they stay until the adoption is confirmed.
    pub left_over: Vec<ObjectKey>,
}

/// Compares the objects of an install with those of a bundle.
pub fn compare(install: &[ObjectKey], bundle: &[ObjectKey]) -> AdoptionComparison {
    let is_of_bundle = |key: &&ObjectKey| bundle.iter().any(|other| other.is_same_object(key));
    let (adopted, left_over): (Vec<_>, Vec<_>) = install.iter().partition(is_of_bundle);
    let cloned = |keys: Vec<&ObjectKey>| keys.into_iter().cloned().collect();
    AdoptionComparison {
        adopted: cloned(adopted),
        left_over: cloned(left_over),
    }
}

#[cfg(test)]
mod tests {
    use windlass_object::InCluster;

    use super::*;

    #[test]
    fn objects_are_compared_regardless_of_their_version() {
        let key = |api_version: &str, name: &str| ObjectKey {
            cluster: InCluster::Local,
            api_version: api_version.to_owned(),
            kind: "Role".to_owned(),
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
        };
        let install = [key("g/v1beta1", "a"), key("g/v1", "b"), key("h/v1", "a")];
        let compared = compare(&install, &[key("g/v1", "a"), key("g/v1", "c")]);
        assert_eq!(compared.adopted, install[..1]);
        assert_eq!(compared.left_over, install[1..]);
    }
}
