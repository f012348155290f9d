use proptest::prelude::*;

use super::*;

#[track_caller]
fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

#[test]
fn the_canonical_form_has_no_fraction_and_the_largest_suffix() {
    for (text, canonical) in [
        ("0", "0"),
        ("0Ki", "0"),
        ("-0.0m", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("007", "7"),
        ("1.", "1"),
        (".5", "500m"),
        ("0.5", "500m"),
        ("1.500", "1500m"),
        ("-1.5", "-1500m"),
        ("1.2345", "1234500u"),
        ("1000m", "1"),
        ("100m", "100m"),
        ("1000000n", "1m"),
        ("1000", "1k"),
        ("12000k", "12M"),
        ("100", "100"),
        ("1234567", "1234567"),
        ("18446744073709551616", "18446744073709551616"),
        ("5E", "5E"),
        ("1000E", "1e21"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1e2", "100"),
        ("1e4", "10e3"),
        ("12e+6", "12e6"),
        ("1e-3", "1e-3"),
        ("1e-2", "10e-3"),
        ("0.00000000000000000001e40", "100e18"),
        ("1024Mi", "1Gi"),
        ("1Ki", "1Ki"),
        ("0.5Ki", "512"),
        ("1.5Gi", "1536Mi"),
        ("1023Ki", "1023Ki"),
        ("1.1Ki", "1126400m"),
        ("0.0001Ki", "102400u"),
        ("-2048Ki", "-2Mi"),
        ("7Ei", "7Ei"),
    ] {
        assert_eq!(quantity(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn fractions_of_a_billionth_are_rounded_away_from_zero() {
    for (text, canonical) in [
        ("0.9n", "1n"),
        ("1.0000000001", "1000000001n"),
        ("-0.1n", "-1n"),
        ("1e-999999999", "1e-9"),
        ("1e-99999999999999999999", "1e-9"),
        ("0e-999999999", "0"),
        ("0.00000000000000000000000000000001Ei", "1n"),
        (
            "0.33333333333333333333333333333333333333333333Ki",
            "341333333334n",
        ),
    ] {
        assert_eq!(quantity(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn binary_amounts_are_capped_and_other_large_amounts_rejected() {
    for text in ["8Ei", "9999999999999999999999999999999999999999Ki"] {
        assert_eq!(quantity(text).to_string(), "9223372036854775807", "{text}");
    }
    assert_eq!(quantity("-8Ei").to_string(), "-9223372036854775807");
    for text in [
        "1e999999999",
        "1e99999999999999999999",
        "-1e30",
        "1e29999999999999999999999",
    ] {
        assert_eq!(
            Quantity::parse(text),
            Err(QuantityError::TooLarge(text.to_owned()))
        );
    }
    assert_eq!(quantity("0e999999999").to_string(), "0");
    let large = quantity("170e27");
    assert_eq!(large + large, large + large + large);
}

#[test]
fn invalid_text_is_rejected() {
    for text in [
        "", ".", "-", "Ki", " 1", "1 ", "1K", "1ki", "1mi", "1e", "1e+", "1e1.5", "1.2.3", "--1", "+-1",
        "1Ee3", "1i", "0x1", "1_000", "NaN", "١",
    ] {
        assert_eq!(Quantity::parse(text), Err(QuantityError::Syntax(text.to_owned())));
    }
}

#[test]
fn a_sum_keeps_the_notation_of_its_first_nonzero_summand() {
    for (quantities, sum) in [
        (&["0", "1Gi", "1G"][..], "2073741824"),
        (&["1G", "1Gi"], "2073741824"),
        (&["0", "0Ki", "512Mi", "512Mi"], "1Gi"),
        (&["500m", "1"], "1500m"),
        (&["1e3", "1k"], "2e3"),
        (&["1Gi", "0.5"], "1073741824500m"),
        (&["1", "-1"], "0"),
        (&[], "0"),
    ] {
        let added = quantities
            .iter()
            .map(|text| quantity(text))
            .fold(Quantity::default(), Add::add);
        assert_eq!(added.to_string(), sum, "{quantities:?}");
    }
}

#[test]
fn quantities_are_compared_by_their_amount() {
    assert_eq!(quantity("1Ki"), quantity("1.024k"));
    assert!(quantity("1G") < quantity("1Gi"));
    assert!(quantity("-1") < Quantity::ZERO);
    assert!(quantity("0Mi").is_zero() && !quantity("1n").is_zero());
}

#[test]
fn amounts_are_rounded_away_from_zero() {
    for (text, unit, rounded) in [
        ("1", Quantity::ONE, "1"),
        ("1001u", Quantity::MILLI, "2m"),
        ("-1001u", Quantity::MILLI, "-2m"),
        ("1m", Quantity::ONE, "1"),
        ("1.5Ki", Quantity::ONE, "1536"),
    ] {
        assert_eq!(quantity(text).rounded_up(unit), quantity(rounded), "{text}");
    }
    assert_eq!(quantity("2048k").in_binary().to_string(), "2000Ki");
    assert_eq!(quantity("1Gi").in_decimal().to_string(), "1073741824");
}

#[test]
fn floats_are_exact_if_possible() {
    for (text, float) in [
        ("0.1", 0.1),
        ("16123456789", 16_123_456_789.0),
        ("250m", 0.25),
        ("-1Ki", -1024.0),
    ] {
        assert_eq!(quantity(text).to_f64().to_bits(), f64::to_bits(float), "{text}");
    }
}

proptest! {
    #[test]
    fn printed_quantities_are_parsed_back(
        number in any::<i64>(),
        places in 0_usize..12,
        suffix in prop::sample::select(vec!["n", "u", "m", "", "k", "M", "Ki", "Mi", "Gi", "Ei", "e3", "e-7"]),
    ) {
        let written = format!("{number}.{}{suffix}", "7".repeat(places));
        let quantity = Quantity::parse(&written).unwrap();
        let printed = quantity.to_string();
        let read = Quantity::parse(&printed).unwrap();
        prop_assert_eq!(read, quantity);
        prop_assert_eq!(read.to_string(), printed);
    }

    #[test]
    fn parsing_never_panics(text in "[-+]?[0-9.]{0,50}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,25}") {
        if let Ok(quantity) = Quantity::parse(&text) {
            prop_assert!(!(quantity + quantity).to_string().is_empty());
        }
    }
}

#[test]
fn an_amount_times_a_factor_is_exact() {
    for (amount, factor, expected) in [
        ("500m", "0.3", "150m"),
        ("1Gi", "0.5", "512Mi"),
        ("1.5Gi", "0.2", "322122547200m"),
        ("3", "0.1", "300m"),
        ("1n", "0.5", "1n"),
        ("-1n", "0.5", "-1n"),
        ("0", "0.5", "0"),
        ("1e29", "1000", "17014118346046923173168730371588"),
    ] {
        let product = quantity(amount).times(quantity(factor));
        assert!(
            product.to_string().starts_with(expected),
            "{amount} * {factor} = {product}"
        );
    }
}
