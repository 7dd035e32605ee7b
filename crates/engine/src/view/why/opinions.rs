//! Who says whether a module is on, and what switches one on that is off.

use std::fmt::Write as _;

use super::{Answer, Link};
use crate::extenders::Extender;
use crate::view::format::{Format, span};
use crate::view::{ModuleView, OpinionView, Source, View, problems};

/// Returns what everybody says about a module, first those who are not asked.
pub(super) fn chain(view: &View, module: &ModuleView, format: Format<'_>) -> Vec<Link> {
    let unasked = module.unasked.iter().map(|opinion| unasked(link(view, opinion, format)));
    let asked = module.opinions.iter().map(|opinion| link(view, opinion, format));
    unasked.chain(asked).collect()
}

fn link(view: &View, opinion: &OpinionView, format: Format<'_>) -> Link {
    let (what, reason) = match &opinion.source {
        Source::Static | Source::Withdrawn(_) => (opinion.by.clone(), None),
        Source::Dynamic => (
            format!("global hook {}", opinion.by),
            opinion.reason.as_ref().map(|why| format!("it ran because: {why}")),
        ),
        Source::Config(object) => (format!("{} key {}", view.place(*object), opinion.by), None),
        Source::Script => {
            ("enabled script".to_owned(), opinion.reason.as_ref().map(|reason| (format.show)(reason)))
        }
    };
    let at = opinion.ago.map(|ago| ((format.at)(ago), ago.as_secs_f64()));
    Link { what, says: Some(opinion.says), reason, at }
}

/// Returns what somebody says who is not asked.
fn unasked(link: Link) -> Link {
    let what = format!("not asked, as --applied-module-extenders has it: {}", link.what);
    Link { what, ..link }
}

/// Returns what switches a module on that is off, the simplest first.
fn switches(view: &View, module: &ModuleView) -> Vec<String> {
    let (name, key) = (&module.name, &module.key);
    let asked = |extender| view.extenders.has(extender);
    let mut ways = Vec::new();
    if module.is_flag_heard {
        ways.push(format!(
            "`addon-operator module enable {name}` writes {key}Enabled: \"true\" into ConfigMap {}",
            view.config_map
        ));
    }
    if asked(Extender::Static) {
        ways.push(format!("set {key}Enabled: true in values.yaml of the modules directory"));
    }
    if ways.is_empty() && asked(Extender::DynamicallyEnabled) {
        ways.push(format!("have a global hook set /{key}Enabled, as --applied-module-extenders has it"));
    }
    if ways.is_empty() {
        ways.push(
            "--applied-module-extenders names nobody who can switch a module on: add Static, DynamicallyEnabled or KubeConfig"
                .to_owned(),
        );
    }
    if let Some(second) = ways.get_mut(1) {
        second.insert_str(0, "or ");
    }
    ways
}

/// Says why a module is off, and what switches it on.
pub(super) fn off(view: &View, module: &ModuleView, format: Format<'_>, answer: &mut Answer) {
    let name = &module.name;
    answer.state = if module.phase == "deleting" { "deleting" } else { "off" };
    let begin = if module.phase == "deleting" {
        format!("module {name} is being removed")
    } else {
        format!("module {name} is off")
    };
    let mut switches = switches(view, module);
    let Some(last) = module.opinions.last() else {
        answer.verdict = format!("{begin}: nothing enables it");
        answer.advice.extend(switches);
        return;
    };
    let enable = switches.drain(..).next().filter(|_| module.is_flag_heard);
    let at = last.ago.map(|ago| format!(" at {} ({} ago)", (format.at)(ago), span(ago))).unwrap_or_default();
    match &last.source {
        Source::Static => {
            answer.verdict = format!("{begin}: {} says so, and nothing after it says otherwise", last.by);
            let set = || format!("set {}Enabled: true in {}", module.key, last.by);
            answer.advice.push(enable.unwrap_or_else(set));
        }
        Source::Dynamic => {
            answer.verdict = format!("{begin}: global hook {} said so{at}", last.by);
            answer.advice.push(format!("look at what the hook {} decides by", last.by));
            answer.advice.extend(enable.map(|enable| format!("{enable}, which has more weight than a hook")));
        }
        Source::Config(object) => {
            answer.verdict = format!("{begin}: key {} of {} says so", last.by, view.place(*object));
            answer.advice.push(format!("`addon-operator module enable {name}` sets that key to \"true\""));
        }
        Source::Withdrawn(source) => {
            answer.verdict = format!("{begin}: {} does not bring it any more, it is being removed", last.by);
            if let Some((what, advice)) = problems::removal_wait(view, name) {
                let _ = write!(answer.verdict, ", and that waits for {}", (format.show)(what));
                answer.advice.extend(advice.cloned());
            } else if module.last_error.is_some() {
                answer.advice.push(problems::way_out_of_removal(view, name, source));
            } else if problems::is_going(view, source) {
                answer.advice.push("nothing: its removal goes on by itself".to_owned());
            } else {
                answer.advice.push(format!("nothing, or let {} offer it again", last.by));
            }
        }
        Source::Script => {
            let reason = last.reason.as_ref().map(|reason| (format.show)(reason));
            let reason =
                reason.map_or_else(|| "without a reason".to_owned(), |reason| format!("because: {reason}"));
            answer.verdict = format!("{begin}: its enabled script said no{at}, {reason}");
            answer.advice.push(format!(
                "the script has the last word: look at what {}/enabled asks for; it runs again when its values or the modules before it change",
                module.path
            ));
        }
    }
}
