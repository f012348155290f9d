//! Validation without code: conditions that are rendered to CUE.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConstantValue, IntOrString, ValueReference, schemas::rules};

/// A validation that is rendered to CUE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    ("self.type != 'condition' || has(self.condition)", "type: condition requires the field condition"),
])))]
pub struct ValidateRuleTemplate {
    /// The type of the template: condition.
    #[serde(rename = "type")]
    pub template_type: ValidateTemplateType,
    /// The comparison that decides, if type is condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ValidateCondition>,
}

/// The type of a validation template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum ValidateTemplateType {
    /// A condition.
    Condition,
}

/// A comparison of two values, and its effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    (
        "self.cond in ['Exist', 'NotExist'] || has(self.value) || has(self.valueRef)",
        "needs value or valueRef; only cond: Exist and NotExist need none",
    ),
    ("!(has(self.value) && has(self.valueRef))", "must not have both value and valueRef"),
    (
        "!(self.cond in ['In', 'NotIn']) || !has(self.value) || has(self.value.stringSlice) || has(self.value.integerSlice) || has(self.value.floatSlice)",
        "cond: In and NotIn need a value that is a list",
    ),
    ("self.cond != 'Regex' || !has(self.value) || has(self.value.string)", "cond: Regex needs a value that is a string"),
])))]
pub struct ValidateCondition {
    /// reject refuses requests that meet the condition; allow refuses those that do not. Defaults to reject.
    #[serde(default)]
    pub affect_mode: AffectMode,
    /// The comparison operator.
    #[serde(rename = "cond")]
    pub operator: ConditionOperator,
    /// The value to compare.
    pub data_ref: ValueReference,
    /// The message of a refusal.
    #[schemars(length(min = 1, max = 4096))]
    pub message: String,
    /// The value to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<ConstantValue>,
    /// The source of the value to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_ref: Option<ValueReference>,
    /// An arithmetic operation on the number to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_process: Option<ValueProcess>,
}

/// The effect of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum AffectMode {
    /// Refuse requests that meet it. This is the default.
    #[default]
    Reject,
    /// Refuse requests that do not meet it.
    Allow,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ConditionOperator {
    /// The values are equal.
    Equal,
    /// The values are not equal.
    NotEqual,
    /// The value exists.
    Exist,
    /// The value does not exist.
    NotExist,
    /// The value is in a list.
    In,
    /// The value is not in a list.
    NotIn,
    /// The value is greater.
    Gt,
    /// The value is greater or equal.
    Gte,
    /// The value is less.
    Lt,
    /// The value is less or equal.
    Lte,
    /// The value matches a regular expression.
    Regex,
}

/// An arithmetic operation before a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValueProcess {
    /// The operator: +, -, * or /.
    pub operation: ProcessOperation,
    /// The second operand: 2, "0.5" or "50%".
    pub operation_with: IntOrString,
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ProcessOperation {
    /// Add the operands.
    #[serde(rename = "+")]
    Add,
    /// Subtract the second operand.
    #[serde(rename = "-")]
    Subtract,
    /// Multiply the operands.
    #[serde(rename = "*")]
    Multiply,
    /// Divide by the second operand.
    #[serde(rename = "/")]
    Divide,
}
