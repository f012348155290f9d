//! Resolves names, and rejects constructs outside of the subset.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    builtins::{self, BuiltinFunction},
    kind::KindSet,
    pattern::Pattern,
    position::SourcePosition,
    problem::{CueProblem, CueProblems},
    syntax::{
        Alternative, BinaryOperation, BinaryOperator, Clause, Comprehension, Declaration, Element,
        Expression, ExpressionKind, Fragment, ImportSpecification, NameTarget, SelectorStepKind, SourceFile,
        StructLiteral,
    },
};

/// Predeclared names of the subset.
const KINDS: &[(&str, KindSet)] = &[
    ("bool", KindSet::BOOL),
    ("bytes", KindSet::BYTES),
    ("float", KindSet::FLOAT),
    ("int", KindSet::INTEGER),
    ("number", KindSet::NUMBER),
    ("string", KindSet::STRING),
];

/// Predeclared names of CUE that are not in the subset.
const PREDECLARED: &[&str] = &[
    "and", "close", "div", "float32", "float64", "int128", "int16", "int32", "int64", "int8", "mod", "or",
    "quo", "rem", "rune", "uint", "uint128", "uint16", "uint32", "uint64", "uint8",
];

/// A scope during resolution.
enum Scope {
    Struct(BTreeSet<String>),
    For {
        key: Option<String>,
        item: Option<String>,
    },
}

struct Resolver {
    scopes: Vec<Scope>,
    packages: BTreeMap<String, &'static str>,
    problems: Vec<CueProblem>,
}

pub(crate) fn resolve(file: &mut SourceFile) -> Result<(), CueProblems> {
    let mut resolver = Resolver {
        scopes: Vec::new(),
        packages: BTreeMap::new(),
        problems: Vec::new(),
    };
    for import in &file.imports {
        resolver.import(import);
    }
    for declaration in &file.body.declarations {
        if let Declaration::Field(field) = declaration
            && field.is_name
            && resolver.packages.contains_key(&field.label)
        {
            let message = format!(
                "{:?} is imported already; rename the field or the import",
                field.label
            );
            resolver
                .problems
                .push(CueProblem::new(field.position, "import", message));
        }
    }
    resolver.literal(&mut file.body);
    match CueProblems::from_problems(resolver.problems) {
        None => Ok(()),
        Some(problems) => Err(problems),
    }
}

impl Resolver {
    fn problem(&mut self, position: SourcePosition, construct: &'static str, message: impl Into<String>) {
        self.problems.push(CueProblem::new(position, construct, message));
    }

    fn import(&mut self, import: &ImportSpecification) {
        let Some(package) = builtins::package(&import.path) else {
            let known = builtins::PACKAGES.join(", ");
            let message = format!(
                "package {:?} is not part of policy CUE; it has {known}",
                import.path
            );
            return self.problem(import.position, "import", message);
        };
        let name = import.name.clone().unwrap_or_else(|| package.to_owned());
        if self.packages.insert(name.clone(), package).is_some() {
            let message = format!("{name:?} is imported already; remove one");
            self.problem(import.position, "import", message);
        }
    }

    fn literal(&mut self, literal: &mut StructLiteral) {
        let names = literal
            .declarations
            .iter()
            .filter_map(|declaration| match declaration {
                Declaration::Field(field) if field.is_name => Some(field.label.clone()),
                _ => None,
            });
        self.scopes.push(Scope::Struct(names.collect()));
        for declaration in &mut literal.declarations {
            match declaration {
                Declaration::Field(field) => self.expression(&mut field.value),
                Declaration::Comprehension(comprehension) => self.comprehension(comprehension),
                Declaration::Embedding(expression) => self.expression(expression),
            }
        }
        self.scopes.pop();
    }

    fn comprehension(&mut self, comprehension: &mut Comprehension) {
        let outside = self.scopes.len();
        for clause in &mut comprehension.clauses {
            match clause {
                Clause::If(condition) => self.expression(condition),
                Clause::For { key, item, source } => {
                    self.expression(source);
                    self.scopes.push(Scope::For {
                        key: key.clone(),
                        item: item.clone(),
                    });
                }
            }
        }
        self.expression(&mut comprehension.body);
        self.scopes.truncate(outside);
    }

    fn expression(&mut self, expression: &mut Expression) {
        let position = expression.position;
        match &mut expression.kind {
            ExpressionKind::Null
            | ExpressionKind::Bool(_)
            | ExpressionKind::Number(_)
            | ExpressionKind::Text(_)
            | ExpressionKind::Top
            | ExpressionKind::Bottom
            | ExpressionKind::Kind(_)
            | ExpressionKind::Call(..) => {}
            ExpressionKind::Name(..) => self.name(expression),
            ExpressionKind::Interpolation(fragments) => {
                for fragment in fragments {
                    if let Fragment::Expression(part) = fragment {
                        self.expression(part);
                    }
                }
            }
            ExpressionKind::Path(base, steps) => {
                if let ExpressionKind::Name(name, _) = &base.kind
                    && let Some(NameTarget::Package(package)) = self.target(name)
                {
                    let message = format!("a function of {package:?} must be called: add parentheses");
                    return self.problem(position, "function value", message);
                }
                self.expression(base);
                for step in steps {
                    if let SelectorStepKind::Index(index) = &mut step.kind {
                        self.expression(index);
                    }
                }
            }
            ExpressionKind::Unary(_, operand) => self.expression(operand),
            ExpressionKind::Operations(first, rest) => {
                self.expression(first);
                if let Some(operation) = rest.first() {
                    self.operand(first, operation.operator.symbol());
                }
                for operation in rest {
                    self.expression(&mut operation.right);
                    self.operand(&operation.right, operation.operator.symbol());
                    self.pattern(operation);
                }
            }
            ExpressionKind::Conjunction(parts) => {
                for part in parts {
                    self.expression(part);
                }
            }
            ExpressionKind::Disjunction(alternatives) => self.alternatives(alternatives),
            ExpressionKind::Marked(value) => {
                let message = "a default is marked only directly in a disjunction: *a | b";
                self.problems
                    .push(CueProblem::new(position, "default mark", message));
                self.expression(value);
            }
            ExpressionKind::UnresolvedCall(..) => self.call(expression),
            ExpressionKind::Struct(literal) => self.literal(literal),
            ExpressionKind::List(elements) => {
                for element in elements {
                    match element {
                        Element::Item(item) => self.expression(item),
                        Element::Comprehension(comprehension) => self.comprehension(comprehension),
                    }
                }
            }
        }
    }

    /// A literal kind is not an operand.
    fn operand(&mut self, operand: &Expression, symbol: &str) {
        if matches!(operand.kind, ExpressionKind::Kind(_) | ExpressionKind::Top) {
            let message = format!("{symbol:?} needs a value, not a kind");
            self.problem(operand.position, "operand", message);
        }
    }

    /// A literal regular expression is compiled once.
    fn pattern(&mut self, operation: &mut BinaryOperation) {
        if let ExpressionKind::Text(text) = &operation.right.kind
            && matches!(
                operation.operator,
                BinaryOperator::Match | BinaryOperator::NotMatch
            )
        {
            match Pattern::new(text) {
                Ok(pattern) => operation.pattern = Some(pattern),
                Err(message) => self.problem(operation.right.position, "regular expression", message),
            }
        }
    }

    fn alternatives(&mut self, alternatives: &mut [Alternative]) {
        for alternative in alternatives {
            let position = alternative.value.position;
            if matches!(alternative.value.kind, ExpressionKind::Disjunction(_)) {
                let message = "not part of policy CUE; write all alternatives without parentheses";
                self.problem(position, "nested disjunction", message);
            }
            self.expression(&mut alternative.value);
        }
    }

    /// Finds a name in the enclosing scopes or among imports.
    fn target(&self, name: &str) -> Option<NameTarget> {
        for (up, scope) in (0..).zip(self.scopes.iter().rev()) {
            match scope {
                Scope::Struct(names) if names.contains(name) => return Some(NameTarget::Field { up }),
                Scope::For { item: Some(item), .. } if item == name => return Some(NameTarget::Item { up }),
                Scope::For { key: Some(key), .. } if key == name => return Some(NameTarget::Key { up }),
                _ => {}
            }
        }
        self.packages
            .get(name)
            .map(|package| NameTarget::Package(package))
    }

    fn name(&mut self, expression: &mut Expression) {
        let position = expression.position;
        let ExpressionKind::Name(name, target) = &mut expression.kind else {
            return;
        };
        match self.target(name) {
            Some(NameTarget::Package(package)) => {
                let message = format!("{package:?} is a package, not a value; call one of its functions");
                self.problem(position, "package", message);
            }
            Some(found) => *target = found,
            None => match KINDS.iter().find(|(kind, _)| kind == name) {
                Some((_, kind)) => expression.kind = ExpressionKind::Kind(*kind),
                None if name == "len" => {
                    self.problem(
                        position,
                        "function value",
                        "\"len\" must be called: add parentheses",
                    );
                }
                None if PREDECLARED.contains(&name.as_str()) => {
                    let message = format!("{name:?} is not part of policy CUE");
                    self.problem(position, "predeclared name", message);
                }
                None => {
                    let message = format!("{name:?} is not declared; declare a field or import a package");
                    self.problem(position, "name", message);
                }
            },
        }
    }

    fn call(&mut self, expression: &mut Expression) {
        let position = expression.position;
        let kind = std::mem::replace(&mut expression.kind, ExpressionKind::Top);
        let ExpressionKind::UnresolvedCall(callee, mut arguments) = kind else {
            return;
        };
        for argument in &mut arguments {
            self.expression(argument);
        }
        let Some(function) = self.function(&callee) else {
            return;
        };
        let (given, wanted) = (arguments.len(), function.parameters.len());
        if given != wanted {
            let construct = if given + 1 == wanted && function.is_predicate() {
                "validator"
            } else {
                "call"
            };
            let message = format!("{function} takes {wanted} arguments, but is given {given}");
            return self.problem(position, construct, message);
        }
        expression.kind = ExpressionKind::Call(function, arguments);
    }

    fn function(&mut self, callee: &Expression) -> Option<&'static BuiltinFunction> {
        let position = callee.position;
        match &callee.kind {
            ExpressionKind::Name(name, _) if self.target(name).is_none() => {
                let function = builtins::function("", name);
                if function.is_none() {
                    let message = format!("{name:?} is not a function of policy CUE; import a package");
                    self.problem(position, "call", message);
                }
                function
            }
            ExpressionKind::Path(base, steps) => {
                let ExpressionKind::Name(name, _) = &base.kind else {
                    self.problem(position, "call", "only functions of packages can be called");
                    return None;
                };
                let (Some(NameTarget::Package(package)), [step]) = (self.target(name), steps.as_slice())
                else {
                    let message =
                        format!("{name:?} is not an imported package; import it, as in import \"strings\"");
                    self.problem(position, "call", message);
                    return None;
                };
                let SelectorStepKind::Field(name) = &step.kind else {
                    self.problem(position, "call", "only functions of packages can be called");
                    return None;
                };
                let function = builtins::function(package, name);
                if function.is_none() {
                    let known = builtins::functions_of(package).join(", ");
                    let message = format!("{package}.{name} is not part of policy CUE; it has {known}");
                    self.problem(step.position, "call", message);
                }
                function
            }
            _ => {
                self.problem(position, "call", "only functions of packages can be called");
                None
            }
        }
    }
}
