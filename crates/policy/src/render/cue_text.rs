//! Programs as text: as `cue fmt` of v0.4.3 leaves them, with four spaces.

use std::collections::BTreeSet;

/// A program.
#[derive(Debug, Default)]
pub(super) struct CueText {
    imports: BTreeSet<&'static str>,
    inputs: BTreeSet<CueInput>,
    sections: Vec<CueSection>,
}

/// What a program is given, in the order in which it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CueInput {
    Object,
    OldObject,
    OtherObject,
    Http,
    OtherObjectOfData,
    HttpOfData,
}

/// Declarations that stand together, and a comment before them.
#[derive(Debug)]
struct CueSection {
    comment: &'static str,
    declarations: Vec<CueDeclaration>,
}

/// What stands in a struct.
#[derive(Debug)]
pub(super) enum CueDeclaration {
    /// A label as it is written, and its value.
    Field(String, ValueText),
    /// `if` clauses, and what there is where they hold.
    Guard(String, Vec<Self>),
}

/// What a field or an item of a list is.
#[derive(Debug)]
pub(super) enum ValueText {
    Expression(String),
    /// A struct or a list on one line: unlike an expression it is not aligned.
    Composite(String),
    Struct(Vec<CueDeclaration>),
    List(Vec<CueElement>),
}

/// What stands in a list.
#[derive(Debug)]
pub(super) enum CueElement {
    Item(ValueText),
    /// `for` and `if` clauses, and the items that they give.
    Each(String, ValueText),
}

/// How wide one level is.
const INDENT: &str = "    ";

// === impl CueText ===

impl CueText {
    /// Has a package imported.
    pub(super) fn import(&mut self, package: &'static str) {
        self.imports.insert(package);
    }

    /// Has an input declared; how it is called.
    pub(super) fn input(&mut self, input: CueInput) -> &'static str {
        self.inputs.insert(input);
        input.name()
    }

    /// Adds a field at the end.
    pub(super) fn section(&mut self, comment: &'static str, label: &str, value: ValueText) {
        self.sections.push(CueSection {
            comment,
            declarations: vec![field(label, value)],
        });
    }

    /// The text, with a new line at its end.
    pub(super) fn write(&self) -> String {
        let mut blocks = Vec::new();
        let imports: Vec<_> = self.imports.iter().map(|name| format!("{name:?}")).collect();
        match imports.as_slice() {
            [] => {}
            [one] => blocks.push(format!("import {one}\n")),
            all => blocks.push(format!(
                "import (\n{INDENT}{}\n)\n",
                all.join(&format!("\n{INDENT}"))
            )),
        }
        blocks.push("data: _ @tag(data)\n".to_owned());
        let inputs: Vec<_> = self
            .inputs
            .iter()
            .map(|input| field(input.name(), expression(input.source())))
            .collect();
        if !inputs.is_empty() {
            let mut block = String::new();
            write_declarations(&mut block, 0, &inputs);
            blocks.push(block);
        }
        for section in &self.sections {
            let mut block = String::new();
            for line in section.comment.lines() {
                block.push_str("// ");
                block.push_str(line);
                block.push('\n');
            }
            write_declarations(&mut block, 0, &section.declarations);
            blocks.push(block);
        }
        blocks.join("\n")
    }
}

/// A field, its label as it is written.
pub(super) fn field(label: &str, value: ValueText) -> CueDeclaration {
    CueDeclaration::Field(label.to_owned(), value)
}

/// An expression.
pub(super) fn expression(text: impl Into<String>) -> ValueText {
    ValueText::Expression(text.into())
}

/// An item for each time that the clauses let one through.
pub(super) fn comprehension(clauses: impl Into<String>, value: ValueText) -> CueElement {
    CueElement::Each(clauses.into(), value)
}

fn write_declarations(text: &mut String, depth: usize, declarations: &[CueDeclaration]) {
    let mut aligned = 0;
    for (place, declaration) in declarations.iter().enumerate() {
        text.push_str(&INDENT.repeat(depth));
        match declaration {
            CueDeclaration::Field(label, ValueText::Expression(value)) => {
                if aligned == 0 {
                    aligned = widest(&declarations[place..]);
                }
                let gap = aligned - width(label) + 1;
                text.push_str(&format!("{label}:{}{value}", " ".repeat(gap)));
            }
            CueDeclaration::Field(label, value) => {
                aligned = 0;
                text.push_str(label);
                text.push_str(": ");
                write_value(text, depth, value);
            }
            CueDeclaration::Guard(clauses, body) => {
                aligned = 0;
                text.push_str(clauses);
                text.push(' ');
                write_struct(text, depth, body);
            }
        }
        text.push('\n');
    }
}

/// How wide the labels of the fields are that are aligned with the first: those with expressions that follow each other.
fn widest(declarations: &[CueDeclaration]) -> usize {
    let labels = declarations.iter().map_while(|declaration| match declaration {
        CueDeclaration::Field(label, ValueText::Expression(_)) => Some(width(label)),
        _ => None,
    });
    labels.max().unwrap_or(0)
}

fn width(label: &str) -> usize {
    label.chars().count()
}

fn write_value(text: &mut String, depth: usize, value: &ValueText) {
    match value {
        ValueText::Expression(line) | ValueText::Composite(line) => text.push_str(line),
        ValueText::Struct(declarations) => write_struct(text, depth, declarations),
        ValueText::List(elements) if elements.is_empty() => text.push_str("[]"),
        ValueText::List(elements) => {
            text.push_str("[\n");
            for element in elements {
                text.push_str(&INDENT.repeat(depth + 1));
                write_element(text, depth + 1, element);
                text.push_str(",\n");
            }
            text.push_str(&INDENT.repeat(depth));
            text.push(']');
        }
    }
}

fn write_element(text: &mut String, depth: usize, element: &CueElement) {
    match element {
        CueElement::Item(value) => write_value(text, depth, value),
        CueElement::Each(clauses, value) => {
            text.push_str(clauses);
            text.push(' ');
            match value {
                ValueText::Expression(line) | ValueText::Composite(line) => {
                    text.push_str(&format!("{{{line}}}"));
                }
                ValueText::Struct(declarations) => write_struct(text, depth, declarations),
                ValueText::List(_) => {
                    text.push_str("{\n");
                    text.push_str(&INDENT.repeat(depth + 1));
                    write_value(text, depth + 1, value);
                    text.push_str(&format!("\n{}}}", INDENT.repeat(depth)));
                }
            }
        }
    }
}

fn write_struct(text: &mut String, depth: usize, declarations: &[CueDeclaration]) {
    if declarations.is_empty() {
        text.push_str("{}");
        return;
    }
    text.push_str("{\n");
    write_declarations(text, depth + 1, declarations);
    text.push_str(&INDENT.repeat(depth));
    text.push('}');
}

// === impl CueInput ===

impl CueInput {
    fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::OldObject => "oldObject",
            Self::OtherObject => "otherObject",
            Self::Http => "http",
            Self::OtherObjectOfData => "otherObject_d",
            Self::HttpOfData => "http_d",
        }
    }

    fn source(self) -> String {
        let parent = match self {
            Self::Object | Self::OldObject => "data",
            _ => "data.extraParams",
        };
        format!("{parent}.{}", self.name())
    }
}
