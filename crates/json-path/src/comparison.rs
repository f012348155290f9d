//! Equality and order of values.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Reports whether two values are equal; numbers are compared by value, so `1` equals `1.0`.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => order_numbers(left, right) == Some(Ordering::Equal),
        _ => left == right,
    }
}

/// Compares two numbers or two strings; other values have no order.
pub fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => order_numbers(left, right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn order_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return Some(left.cmp(&right));
    }
    if let (Some(left), Some(right)) = (left.as_u64(), right.as_u64()) {
        return Some(left.cmp(&right));
    }
    left.as_f64()?.partial_cmp(&right.as_f64()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        assert!(equal(&json!(1), &json!(1.0)));
        assert!(!equal(&json!(i64::MAX), &json!(i64::MAX - 1)));
        assert_eq!(order(&json!(-1), &json!(u64::MAX)), Some(Ordering::Less));
        assert_eq!(order(&json!(u64::MAX), &json!(i64::MAX)), Some(Ordering::Greater));
        assert_eq!(order(&json!(1.5), &json!(1)), Some(Ordering::Greater));
    }

    #[test]
    fn only_values_of_one_type_are_ordered() {
        assert!(!equal(&json!("1"), &json!(1)));
        assert!(equal(&json!({"a": [null]}), &json!({"a": [null]})));
        assert_eq!(order(&json!("a"), &json!("b")), Some(Ordering::Less));
        for (left, right) in [
            (json!("1"), json!(1)),
            (json!(true), json!(false)),
            (json!(null), json!(0)),
        ] {
            assert_eq!(order(&left, &right), None, "{left} {right}");
        }
    }
}
