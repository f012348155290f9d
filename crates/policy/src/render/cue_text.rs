//! Formats programs like `cue fmt` of v0.4.3, with four spaces.

use std::collections::BTreeSet;

/// A CUE program under construction.
#[derive(Debug, Default)]
pub(super) struct CueText {
    imports: BTreeSet<&'static str>,
    inputs: BTreeSet<CueInput>,
    sections: Vec<CueSection>,
}

/// An input of a program, in the order of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CueInput {
    Object,
    OldObject,
    OtherObject,
    Http,
    OtherObjectOfData,
    HttpOfData,
}

/// Adjacent declarations with a comment in front.
#[derive(Debug)]
struct CueSection {
    comment: &'static str,
    declarations: Vec<CueDeclaration>,
}

/// An element of a struct.
#[derive(Debug)]
pub(super) enum CueDeclaration {
    /// A formatted label, and its value.
    Field(String, ValueText),
    /// `if` clauses, and the declarations under them.
    Guard(String, Vec<Self>),
}

/// The value of a field or item.
#[derive(Debug)]
pub(super) enum ValueText {
    Expression(String),
    /// A struct or a list on one line: unlike an expression it is not aligned.
    Composite(String),
    Struct(Vec<CueDeclaration>),
    List(Vec<CueElement>),
}

/// An element of a list.
#[derive(Debug)]
pub(super) enum CueElement {
    Item(ValueText),
    /// `for` and `if` clauses, and the items that they yield.
    Each(String, ValueText),
}

/// The width of an indentation level.
const INDENT: &str = "    ";

impl CueText {
    pub(super) fn import(&mut self, package: &'static str) {
        self.imports.insert(package);
    }

    /// Declares an input and returns its name.
    pub(super) fn input(&mut self, input: CueInput) -> &'static str {
        self.inputs.insert(input);
        input.name()
    }

    /// Appends a field.
    pub(super) fn section(&mut self, comment: &'static str, label: &str, value: ValueText) {
        self.sections.push(CueSection {
            comment,
            declarations: vec![field(label, value)],
        });
    }

    /// Formats the program, with a final line break.
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

/// Creates a field with a formatted label.
pub(super) fn field(label: &str, value: ValueText) -> CueDeclaration {
    CueDeclaration::Field(label.to_owned(), value)
}

pub(super) fn expression(text: impl Into<String>) -> ValueText {
    ValueText::Expression(text.into())
}

/// Creates a comprehension: an item for each match of the clauses.
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

/// The width of the labels that are aligned with the first: those of adjacent fields with expressions.
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
