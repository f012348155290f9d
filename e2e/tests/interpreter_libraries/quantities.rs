//! Sums of quantities.

use interpreter::Quantity;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::json;

use crate::libraries::{Libraries, LibraryAnswer};

/// The number of sums.
const SUMS: usize = 6000;

const SUFFIXES: [&str; 26] = [
    "", "", "", "", "m", "m", "u", "n", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    "e3", "E-2", "e+1", "K", "i", "e",
];

#[test]
fn quantities_have_the_same_sum() -> anyhow::Result<()> {
    let Some(libraries) = Libraries::build()? else {
        return Ok(());
    };
    let mut chance = StdRng::seed_from_u64(20);
    let sums: Vec<Vec<String>> = (0..SUMS)
        .map(|_| {
            (0..chance.random_range(1..4))
                .map(|_| quantity(&mut chance))
                .collect()
        })
        .collect();
    let questions = sums.iter().map(|texts| json!({"sum": texts}));
    let mut wrong = Vec::new();
    let mut added = 0;
    for (texts, theirs) in sums.iter().zip(libraries.ask(questions.collect())?) {
        let amounts: Result<Vec<_>, _> = texts.iter().map(|text| Quantity::parse(text)).collect();
        let ours = amounts.map(|amounts| {
            amounts
                .into_iter()
                .fold(Quantity::default(), |sum, amount| sum + amount)
        });
        let agrees = match (&ours, &theirs) {
            (Ok(ours), LibraryAnswer::Value(theirs)) => {
                added += 1;
                let number = theirs["number"].as_f64().unwrap_or(f64::NAN);
                theirs["text"] == ours.to_string()
                    && (ours.to_f64() - number).abs() <= 1e-12 * number.abs().max(1e-9)
            }
            (Err(_), LibraryAnswer::Error(_)) => true,
            _ => false,
        };
        if !agrees {
            let ours = ours.map(|ours| (ours.to_string(), ours.to_f64()));
            wrong.push(format!("{texts:?}: ours {ours:?}, theirs {theirs}"));
        }
    }
    anyhow::ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    anyhow::ensure!(added > SUMS / 2, "only {added} sums are valid");
    Ok(())
}

/// Returns a random quantity, which may be invalid.
fn quantity(chance: &mut StdRng) -> String {
    let whole = match chance.random_range(0..8) {
        // A suffix without digits, such as `Gi`, is invalid here and 0 in Go.
        0 => "0".to_owned(),
        // Quantities above 10^29 are rejected here.
        1 => chance.random_range(0..10_u64.pow(11)).to_string(),
        3 => format!("00{}", chance.random_range(0..100)),
        4 => (1024_u64 * chance.random_range(0..5000)).to_string(),
        _ => chance.random_range(0..2000).to_string(),
    };
    let fraction = match chance.random_range(0..8) {
        0 => format!(".{}", chance.random_range(0..1000)),
        1 => ".5".to_owned(),
        2 => format!(".{:012}", chance.random_range(0..1_000_000)),
        _ => String::new(),
    };
    let sign = ["", "", "", "", "", "-", "+", " "]
        .choose(chance)
        .copied()
        .unwrap_or("");
    let suffix = SUFFIXES.choose(chance).copied().unwrap_or("");
    format!("{sign}{whole}{fraction}{suffix}")
}
