//! One render: the templates, what functions may use, and how much was used.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use golang::strconv::quote;

use super::super::error::ExecError;
use super::super::names::Names;
use super::super::parser::{parse, stack_address};
use super::super::{Limits, Template, TemplateSet};
use super::execute;
use crate::environment::Environment;
use crate::value::{CallError, Context, CycleScope, Text, Value};

/// The name that Helm gives to the template that holds all others, and to what `tpl` is given.
const ROOT: &str = "gotpl";

/// How often one template may be included within itself.
const MAX_INCLUDES: usize = 1_000;

/// How many bytes of texts are kept with what they were parsed to, and how many texts: charts hand the same few to `tpl` for each
/// of their objects.
const MAX_KEPT_BYTES: usize = 512 << 10;
const MAX_KEPT_TEXTS: usize = 256;

/// What `tpl` was given, as it was parsed.
#[derive(Default)]
struct ParsedTexts {
    texts: BTreeMap<Box<[u8]>, Rc<[Arc<Template>]>>,
    bytes: usize,
}

impl ParsedTexts {
    fn parsed(&mut self, text: &[u8]) -> Result<Rc<[Arc<Template>]>, CallError> {
        if let Some(known) = self.texts.get(text) {
            return Ok(Rc::clone(known));
        }
        let parsed: Rc<[Arc<Template>]> = parse(ROOT, text)
            .map_err(|error| CallError::new(format!("cannot parse template {}: {error}", quote(text))))?
            .into();
        if text.len() <= MAX_KEPT_BYTES / 2 {
            if self.bytes + text.len() > MAX_KEPT_BYTES || self.texts.len() >= MAX_KEPT_TEXTS {
                *self = Self::default();
            }
            self.bytes += text.len();
            self.texts.insert(text.into(), Rc::clone(&parsed));
        }
        Ok(parsed)
    }
}

/// The state of one render, handed to every function as its [`Context`].
///
/// Maps that a template changes are emptied when the render ends: they may hold
/// themselves, and would never be freed otherwise.
pub struct Renderer<'a> {
    environment: &'a mut dyn Environment,
    templates: TemplateSet,
    limits: Limits,
    strict: bool,
    steps: u64,
    depth: usize,
    bytes: usize,
    stack_base: usize,
    /// How often each template is being included right now.
    included: Names<usize>,
    parsed: ParsedTexts,
    _cycles: CycleScope,
}

impl<'a> Renderer<'a> {
    /// Returns the state of a render that has not begun.
    ///
    /// To be made on the thread that renders: the use of its stack is counted from here.
    pub fn new(environment: &'a mut dyn Environment, templates: TemplateSet, limits: Limits) -> Self {
        Self {
            environment,
            templates,
            limits,
            strict: false,
            steps: 0,
            depth: 0,
            bytes: 0,
            stack_base: stack_address(),
            included: Names::default(),
            parsed: ParsedTexts::default(),
            _cycles: CycleScope::begin(),
        }
    }

    /// Makes a missing key an error, as `helm lint --strict` does.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Reports whether a missing key is an error.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Returns what the file `name` renders to, without any `<no value>`.
    pub fn render(&mut self, name: &str, data: &Value) -> Result<Vec<u8>, ExecError> {
        let template = self.templates.get(name).cloned().ok_or_else(|| ExecError::new(no_template(name)))?;
        let mut out = Vec::new();
        execute(self, &template, data, &mut out).map_err(|error| error.in_file(name))?;
        Ok(without_no_value(out))
    }

    pub(super) fn template(&self, name: &str) -> Option<Arc<Template>> {
        self.templates.get(name).cloned()
    }

    /// Counts one executed node.
    pub(super) fn step(&mut self) -> Result<(), CallError> {
        self.count(1)
    }

    /// Enters a template; to be left with [`Self::leave`], also after an error.
    pub(super) fn enter(&mut self) -> Result<(), CallError> {
        self.depth += 1;
        if self.depth > self.limits.depth {
            let limit = self.limits.depth;
            return Err(CallError::Limit(format!("exceeded maximum template depth ({limit})")));
        }
        self.check_stack()
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Reports an error if the stack is nearly used up.
    pub(super) fn check_stack(&self) -> Result<(), CallError> {
        if self.stack_base.abs_diff(stack_address()) > self.limits.stack {
            let depth = self.depth;
            return Err(CallError::Limit(format!(
                "templates are nested too deeply, {depth} within each other"
            )));
        }
        Ok(())
    }
}

impl Context for Renderer<'_> {
    fn environment(&mut self) -> &mut dyn Environment {
        self.environment
    }

    fn execute_template(&mut self, name: &str, data: &Value) -> Result<Text, CallError> {
        let Some(template) = self.templates.get(name).cloned() else {
            return Err(CallError::new(no_template(name)));
        };
        match self.included.get_mut(name) {
            None => self.included.insert(Arc::clone(&template.name), 1),
            Some(count) if *count <= MAX_INCLUDES => *count += 1,
            Some(_) => {
                return Err(CallError::new(format!(
                    "rendering template has a nested reference name: {name}: unable to execute template"
                )));
            }
        }
        let mut out = Vec::new();
        let executed = execute(self, &template, data, &mut out);
        if let Some(count) = self.included.get_mut(name) {
            *count -= 1;
        }
        executed.map_err(|error| error.into_call(str::to_owned))?;
        Ok(out.into())
    }

    fn parse_and_execute(&mut self, text: &[u8], data: &Value) -> Result<Text, CallError> {
        self.charge(text.len())?;
        if !text.windows(2).any(|pair| pair == b"{{") {
            // Without an action it prints itself.
            self.charge(text.len())?;
            return Ok(without_no_value(text.to_vec()).into());
        }
        let parsed = self.parsed.parsed(text)?;
        let Some(main) = parsed.first().cloned() else {
            return Ok(Text::default());
        };
        let mut templates = self.templates.layered();
        templates.add(&parsed);
        let below = std::mem::replace(&mut self.templates, templates);
        let mut out = Vec::new();
        let executed = execute(self, &main, data, &mut out);
        self.templates = below;
        executed.map_err(|error| {
            error.into_call(|cause| {
                format!("error during tpl function execution for {}: {cause}", quote(text))
            })
        })?;
        Ok(without_no_value(out).into())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), CallError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes {
            let limit = self.limits.bytes;
            return Err(CallError::Limit(format!("the render makes more than {limit} bytes")));
        }
        Ok(())
    }

    fn count(&mut self, steps: usize) -> Result<(), CallError> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > self.limits.steps {
            let limit = self.limits.steps;
            return Err(CallError::Limit(format!("the render takes more than {limit} steps")));
        }
        Ok(())
    }
}

fn no_template(name: &str) -> String {
    format!(
        "template: no template {} associated with template {}",
        quote(name.as_bytes()),
        quote(ROOT.as_bytes())
    )
}

/// Helm takes away every `<no value>`, wherever it came from.
fn without_no_value(out: Vec<u8>) -> Vec<u8> {
    const NO_VALUE: &[u8] = b"<no value>";
    let mut start = 0;
    let mut kept = Vec::new();
    let found = |mut from: usize| loop {
        let rest = out.get(from..)?;
        let at = rest.iter().position(|byte| *byte == b'<')?;
        if rest.get(at..).is_some_and(|rest| rest.starts_with(NO_VALUE)) {
            return Some(from + at);
        }
        from += at + 1;
    };
    while let Some(at) = found(start) {
        kept.extend_from_slice(out.get(start..at).unwrap_or_default());
        start = at + NO_VALUE.len();
    }
    if start == 0 {
        return out;
    }
    kept.extend_from_slice(out.get(start..).unwrap_or_default());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_were_parsed_take_bounded_memory() {
        let mut kept = ParsedTexts::default();
        for number in 0..3 * MAX_KEPT_TEXTS {
            assert!(kept.parsed(format!("{{{{ {number} }}}}").as_bytes()).is_ok());
            assert!(kept.texts.len() <= MAX_KEPT_TEXTS);
        }
        for number in 0..9 {
            let text = format!("{{{{ {number} }}}}{}", "x".repeat(MAX_KEPT_BYTES / 5));
            assert!(kept.parsed(text.as_bytes()).is_ok());
            assert!(kept.bytes <= MAX_KEPT_BYTES);
            assert_eq!(kept.bytes, kept.texts.keys().map(|text| text.len()).sum::<usize>());
        }
        let known = kept.texts.len();
        let large = "x".repeat(MAX_KEPT_BYTES / 2 + 1);
        assert!(kept.parsed(large.as_bytes()).is_ok());
        assert_eq!(kept.texts.len(), known, "a text that would push out all others is not kept");
        assert!(kept.parsed(b"{{").is_err());
        assert_eq!(kept.texts.len(), known, "neither is one with an error");
    }
}
