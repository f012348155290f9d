//! Validation without code: conditions that are rendered to CUE.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConstantValue, IntOrString, ValueReference, schemas::rules};

/// A validation that is rendered to CUE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[
    ("self.type != 'condition' || has(self.condition)", "type: condition needs condition"),
])))]
pub struct ValidateRuleTemplate {
    /// condition.
    #[serde(rename = "type")]
    pub template_type: ValidateTemplateType,
    /// What is compared with what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ValidateCondition>,
}

/// What a template validates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum ValidateTemplateType {
    /// A condition.
    Condition,
}

/// What is compared with what, and what follows.
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
    /// reject refuses what the condition holds for; allow refuses what it does not hold for. Not given for reject.
    #[serde(default)]
    pub affect_mode: AffectMode,
    /// How it is compared.
    #[serde(rename = "cond")]
    pub operator: ConditionOperator,
    /// What is compared.
    pub data_ref: ValueReference,
    /// What is said where something is refused.
    #[schemars(length(min = 1, max = 4096))]
    pub message: String,
    /// What it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<ConstantValue>,
    /// Where that comes from which it is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_ref: Option<ValueReference>,
    /// What is done with the number that it is compared with, before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_process: Option<ValueProcess>,
}

/// What follows of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub enum AffectMode {
    /// What it holds for is refused. This is the default.
    #[default]
    Reject,
    /// What it does not hold for is refused.
    Allow,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ConditionOperator {
    /// They are equal.
    Equal,
    /// They are not equal.
    NotEqual,
    /// There is one.
    Exist,
    /// There is none.
    NotExist,
    /// It is in a list.
    In,
    /// It is not in a list.
    NotIn,
    /// It is greater.
    Gt,
    /// It is greater or equal.
    Gte,
    /// It is less.
    Lt,
    /// It is less or equal.
    Lte,
    /// It fits a regular expression.
    Regex,
}

/// What is done with a number before something is compared with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValueProcess {
    /// +, -, * or /.
    pub operation: ProcessOperation,
    /// The other number: 2, "0.5" or "50%".
    pub operation_with: IntOrString,
}

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ProcessOperation {
    /// They are added.
    #[serde(rename = "+")]
    Add,
    /// The second is subtracted.
    #[serde(rename = "-")]
    Subtract,
    /// They are multiplied.
    #[serde(rename = "*")]
    Multiply,
    /// The first is divided by the second.
    #[serde(rename = "/")]
    Divide,
}
