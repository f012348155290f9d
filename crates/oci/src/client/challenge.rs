//! Authentication challenges: `WWW-Authenticate` (RFC 9110 §11.6.1).

use std::collections::BTreeMap;

/// A challenge of `WWW-Authenticate`: a scheme with parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AuthChallenge {
    /// The scheme, in lower case.
    pub(super) scheme: String,
    /// Its parameters; names in lower case.
    pub(super) parameters: BTreeMap<String, String>,
}

impl AuthChallenge {
    pub(super) fn parse(header: &str) -> Vec<Self> {
        let mut challenges: Vec<Self> = Vec::new();
        for item in items(header) {
            let (start, rest) = item.split_once([' ', '\t']).unwrap_or((item, ""));
            let rest = rest.trim_start();
            let begins = !start.is_empty() && start.bytes().all(is_token) && !rest.starts_with('=');
            let parameter = if begins {
                challenges.push(Self {
                    scheme: start.to_ascii_lowercase(),
                    parameters: BTreeMap::new(),
                });
                rest
            } else {
                item
            };
            if let (Some(challenge), Some((name, value))) = (challenges.last_mut(), parameter.split_once('='))
            {
                let name = name.trim().to_ascii_lowercase();
                challenge
                    .parameters
                    .entry(name)
                    .or_insert_with(|| unquoted(value.trim()));
            }
        }
        challenges
    }
}

/// Splits a header at commas outside of quotes.
fn items(header: &str) -> Vec<&str> {
    let (mut items, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (index, character) in header.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                items.push(header[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    items.push(header[start..].trim());
    items.retain(|item| !item.is_empty());
    items
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else {
        return value.to_owned();
    };
    let mut text = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => text.extend(characters.next()),
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};

    use super::*;

    fn challenge(scheme: &str, parameters: &[(&str, &str)]) -> AuthChallenge {
        let parameters = parameters.iter();
        AuthChallenge {
            scheme: scheme.to_owned(),
            parameters: parameters
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn challenges_and_parameters_are_parsed() {
        let hub = [
            ("realm", "https://auth.docker.io/token"),
            ("scope", "repository:a/b:pull,push"),
            ("service", "registry.docker.io"),
        ];
        for (header, expected) in [
            (
                r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push""#,
                vec![challenge("bearer", &hub)],
            ),
            (
                r#"BASIC Realm = "x, y", bearer realm=z , service="a\"b""#,
                vec![
                    challenge("basic", &[("realm", "x, y")]),
                    challenge("bearer", &[("realm", "z"), ("service", "a\"b")]),
                ],
            ),
            (
                "Negotiate, Basic",
                vec![challenge("negotiate", &[]), challenge("basic", &[])],
            ),
            (
                r#"Basic realm="x" ,, "#,
                vec![challenge("basic", &[("realm", "x")])],
            ),
            (r#"Bearer realm="x"#, vec![challenge("bearer", &[("realm", "x")])]),
            ("", vec![]),
            ("realm=x", vec![]),
        ] {
            assert_eq!(AuthChallenge::parse(header), expected, "{header}");
        }
    }

    proptest! {
        #[test]
        fn formatted_challenges_parse_back(
            parameters in collection::btree_map("[a-z]{1,5}", "[ -~]{0,12}", 1..4),
        ) {
            let written: Vec<_> = parameters
                .iter()
                .map(|(name, value)| format!("{name}=\"{}\"", value.replace('\\', r"\\").replace('"', r#"\""#)))
                .collect();
            let read = AuthChallenge::parse(&format!("Bearer {}", written.join(",")));
            prop_assert_eq!(read, vec![AuthChallenge { scheme: "bearer".to_owned(), parameters }]);
        }

        #[test]
        fn any_header_is_parsed_without_panic(header in ".{0,80}") {
            let _ = AuthChallenge::parse(&header);
        }
    }
}
