//! Parses and checks expressions.

use kube_cel::cel::{
    common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, MapEntryExpr},
    parser::Parser,
};

use super::{functions, stack::on_large_stack};
use crate::{PolicyProblem, ProgramPosition};

/// The maximum length of an expression in bytes: parsing is recursive.
const LONGEST: usize = 4096;

/// The maximum nesting of an expression.
const DEEPEST: usize = 64;

/// The maximum nesting of loops.
const LOOPS: usize = 3;

/// A parsed expression whose references are checked.
#[derive(Debug)]
pub(super) struct CelExpression {
    pub(super) text: String,
    pub(super) root: IdedExpr,
    /// The nesting depth.
    pub(super) depth: usize,
}

/// Collects the problems of an expression.
struct Check<'a> {
    text: &'a str,
    variables: &'a [String],
    scope: Vec<String>,
    loops: usize,
    deepest: usize,
    problems: Vec<PolicyProblem>,
}

impl CelExpression {
    /// Parses an expression with the given variables.
    ///
    /// # Errors
    ///
    /// Every problem, each with its position.
    pub(super) fn parse(text: &str, variables: &[String]) -> Result<Self, Vec<PolicyProblem>> {
        let whole = |message: String| vec![PolicyProblem::new("", message)];
        if text.trim().is_empty() {
            return Err(whole("must not be empty".into()));
        }
        if text.len() > LONGEST {
            return Err(whole(format!("must not be longer than {LONGEST} bytes")));
        }
        on_large_stack(|| Self::parse_here(text, variables)).unwrap_or_else(|error| Err(whole(error)))
    }

    fn parse_here(text: &str, variables: &[String]) -> Result<Self, Vec<PolicyProblem>> {
        let mut root = Parser::new().parse(text).map_err(|errors| {
            let errors = errors.errors.iter();
            errors
                .map(|error| {
                    let place = |place: isize| usize::try_from(place).unwrap_or(0).max(1);
                    PolicyProblem {
                        position: Some(ProgramPosition {
                            line: place(error.pos.0),
                            column: place(error.pos.1),
                        }),
                        ..PolicyProblem::new("", error.msg.split_whitespace().collect::<Vec<_>>().join(" "))
                    }
                })
                .collect::<Vec<_>>()
        })?;
        let mut check = Check {
            text,
            variables,
            scope: Vec::new(),
            loops: 0,
            deepest: 0,
            problems: Vec::new(),
        };
        check.walk(&mut root, 0);
        let depth = check.deepest;
        let mut problems = check.problems;
        problems.dedup();
        if problems.is_empty() {
            Ok(Self {
                text: text.to_owned(),
                root,
                depth,
            })
        } else {
            Err(problems)
        }
    }
}

impl Check<'_> {
    fn note(&mut self, name: &str, message: String) {
        self.problems.push(PolicyProblem {
            position: find_name(self.text, name),
            ..PolicyProblem::new("", message)
        });
    }

    /// Checks an expression, and converts typed objects, which the library does not support, into maps.
    fn walk(&mut self, expression: &mut IdedExpr, depth: usize) {
        if depth > DEEPEST {
            self.problems = vec![PolicyProblem::new(
                "",
                format!("must not be nested deeper than {DEEPEST} levels"),
            )];
            return;
        }
        let depth = depth + 1;
        self.deepest = self.deepest.max(depth);
        match &mut expression.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => {
                let is_known = name.starts_with('@')
                    || self.scope.contains(name)
                    || INPUTS.contains(&name.as_str())
                    || (name == VARIABLES && !self.variables.is_empty());
                if !is_known {
                    let name = name.clone();
                    let message = match name.as_str() {
                        VARIABLES => {
                            "variables is undeclared: the rule has none before this expression".to_owned()
                        }
                        _ => format!("undeclared reference to {name}; there are {}", INPUTS.join(", ")),
                    };
                    self.note(&name, message);
                }
            }
            Expr::Select(select) => {
                if let Expr::Ident(name) = &select.operand.expr
                    && name == VARIABLES
                    && !self.variables.is_empty()
                    && !self.variables.contains(&select.field)
                {
                    let field = select.field.clone();
                    self.note(&field, format!("undeclared reference to variables.{field}"));
                    return;
                }
                select.field = unescaped(&select.field);
                self.walk(&mut select.operand, depth);
            }
            Expr::Call(call) => {
                let mut name = call.func_name.clone();
                let namespace = call.target.as_ref().and_then(|target| match &target.expr {
                    Expr::Ident(target)
                        if functions::is_namespace(target) && !self.scope.contains(target) =>
                    {
                        Some(target.clone())
                    }
                    _ => None,
                });
                match (&namespace, &mut call.target) {
                    (Some(namespace), _) => name = format!("{namespace}.{name}"),
                    (None, Some(target)) => self.walk(target, depth),
                    (None, None) => {}
                }
                if !functions::is_known(&name) {
                    let own = call.func_name.clone();
                    self.note(&own, format!("undeclared reference to function {name}"));
                }
                for argument in &mut call.args {
                    self.walk(argument, depth);
                }
            }
            Expr::List(list) => {
                for element in &mut list.elements {
                    self.walk(element, depth);
                }
            }
            Expr::Map(map) => self.walk_entries(&mut map.entries, depth),
            Expr::Struct(object) => {
                let name = object.type_name.clone();
                let is_known = name == "JSONPatch" || name == "Object" || name.starts_with("Object.");
                if !is_known {
                    self.note(
                        &name,
                        format!("undeclared type {name}; there are JSONPatch and Object"),
                    );
                    return;
                }
                let mut entries = std::mem::take(&mut object.entries);
                entries.iter_mut().for_each(name_key);
                self.walk_entries(&mut entries, depth);
                expression.expr = Expr::Map(kube_cel::cel::common::ast::MapExpr { entries });
            }
            Expr::Comprehension(comprehension) => {
                if comprehension.iter_var2.is_some() {
                    self.problems.push(PolicyProblem::new(
                        "",
                        "loops with two variables are not supported",
                    ));
                    return;
                }
                self.walk(&mut comprehension.iter_range, depth);
                self.walk(&mut comprehension.accu_init, depth);
                self.loops += 1;
                if self.loops > LOOPS {
                    let message = format!("loops must not be nested deeper than {LOOPS} levels");
                    self.problems.push(PolicyProblem::new("", message));
                }
                let known = self.scope.len();
                self.scope.push(comprehension.iter_var.clone());
                self.scope.push(comprehension.accu_var.clone());
                for part in [
                    &mut comprehension.loop_cond,
                    &mut comprehension.loop_step,
                    &mut comprehension.result,
                ] {
                    self.walk(part, depth);
                }
                self.scope.truncate(known);
                self.loops -= 1;
            }
        }
    }

    fn walk_entries(&mut self, entries: &mut [IdedEntryExpr], depth: usize) {
        for entry in entries {
            match &mut entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.walk(&mut entry.key, depth);
                    self.walk(&mut entry.value, depth);
                }
                EntryExpr::StructField(field) => self.walk(&mut field.value, depth),
            }
        }
    }
}

/// The inputs of every expression.
pub(super) const INPUTS: [&str; 4] = ["object", "oldObject", "request", "namespaceObject"];

/// The inputs after variables.
pub(super) const VARIABLES: &str = "variables";

/// Turns a field of an object into a key of a map.
fn name_key(entry: &mut IdedEntryExpr) {
    if let EntryExpr::StructField(field) = &entry.expr {
        let key = LiteralValue::String(unescaped(&field.field).as_str().into());
        entry.expr = EntryExpr::MapEntry(MapEntryExpr {
            key: IdedExpr {
                id: entry.id,
                expr: Expr::Literal(key),
            },
            value: field.value.clone(),
            optional: field.optional,
        });
    }
}

/// Reverses Kubernetes' escaping of field names that are not CEL identifiers.
fn unescaped(name: &str) -> String {
    if !name.contains("__") {
        return name.to_owned();
    }
    let keyword = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(keyword) = keyword.filter(|keyword| KEYWORDS.contains(keyword)) {
        return keyword.to_owned();
    }
    name.replace("__dot__", ".")
        .replace("__dash__", "-")
        .replace("__slash__", "/")
        .replace("__underscores__", "__")
}

/// Reserved words, which cannot be field names in CEL.
const KEYWORDS: [&str; 20] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
];

/// Finds the first occurrence of a name as a whole word.
fn find_name(text: &str, name: &str) -> Option<ProgramPosition> {
    let is_inner = |character: char| character.is_alphanumeric() || character == '_';
    let stands_alone = |(start, _): &(usize, &str)| {
        !text[..*start].ends_with(is_inner) && !text[start + name.len()..].starts_with(is_inner)
    };
    let (start, _) = text.match_indices(name).find(stands_alone)?;
    let before = &text[..start];
    let line = before.rsplit('\n').next().unwrap_or_default();
    Some(ProgramPosition {
        line: before.matches('\n').count() + 1,
        column: line.chars().count() + 1,
    })
}
