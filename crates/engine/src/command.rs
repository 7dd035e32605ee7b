//! What people and programs ask for.

use std::collections::BTreeSet;

use crate::cause::Cause;
use crate::converge::Converges;
use crate::effect::Effect;
use crate::event::Command;
use crate::failure::{Failure, FailureKind};
use crate::module::{self, Lower, Modules};
use crate::name::{CommandId, QueueName};
use crate::queue::End;
use crate::source::Sources;
use crate::task::{Task, Trigger};

/// Does what was asked, or answers why not. Nothing is done unless the operator works.
pub(crate) fn carry_out(
    machines: (&mut Converges, &mut Modules, &mut Sources),
    lower: &mut Lower<'_>,
    (id, command): (CommandId, Command),
    may_work: bool,
) {
    let outcome = if may_work {
        answer(machines, lower, id, command)
    } else {
        let failure = Failure::new(FailureKind::Cluster, "the operator is starting or ending");
        Err(failure.advise("try again later"))
    };
    // Without an answer, it follows when the ConfigMap or the object is written.
    if let Some(outcome) = outcome.transpose() {
        lower.cx.push(Effect::AnswerCommand { id, outcome });
    }
}

/// Does what was asked. Returns the answer, or why it is not done; `None` when the answer comes later.
fn answer(
    (converges, modules, sources): (&mut Converges, &mut Modules, &mut Sources),
    lower: &mut Lower<'_>,
    id: CommandId,
    command: Command,
) -> Result<Option<String>, Failure> {
    let main = QueueName::main();
    Ok(Some(match command {
        Command::Converge => {
            if converges.has_begun() {
                let cause = Cause::outside("command converge");
                converges.restart(lower, Trigger::CommandConverge, true, &cause);
            } else {
                lower.queues.cancel_backoff(&main);
            }
            format!("converge {} is queued", converges.generation())
        }
        Command::PurgeModule(name) => {
            let (kind, cause) =
                (modules.removal(lower.configuration, &name)?, format!("command module purge {name}"));
            let queue = module::queue_of(lower.configuration, &kind);
            let task = Task::new(lower.cx, &queue, kind, Trigger::CommandPurge, Cause::outside(cause), None);
            lower.queues.put(lower.cx, &queue, End::Back, vec![task]);
            format!("the removal of release {name} is queued")
        }
        Command::ResumeModule(name) => {
            let has_parked = lower.queues.take_back_parked(|task| task.module() == Some(&name));
            match modules.resume(lower.cx, lower.configuration, &name) {
                Err(_) if has_parked => return Ok(Some(format!("the parked hooks of module {name} go on"))),
                outcome => outcome?,
            }
            let cause = Cause::outside(format!("command module resume {name}"));
            modules.queue_run(lower, &name, Trigger::CommandResume, &cause);
            format!("module {name} goes on; a run of it is queued")
        }
        Command::RunModule(name) => {
            if !modules.is_on(&name) {
                return Err(modules.why_off(&name));
            }
            if let Some(failure) = modules.why_waiting(&name) {
                return Err(failure);
            }
            converges.forget_script(modules, lower.cx, &name);
            lower.queues.cancel_backoff(&lower.configuration.guest_queue(&name).unwrap_or(main));
            let cause = Cause::outside(format!("command module run {name}"));
            let names = BTreeSet::from([name.clone()]);
            converges.look_again(lower.cx, lower.queues, names, Trigger::CommandRun, &cause);
            format!("a run of module {name} is queued")
        }
        Command::SetEnabled(name, on) => {
            let Some(module) = modules.get(&name) else { return Err(modules.why_off(&name)) };
            lower.configuration.save_flag(lower.cx, id, module.spec(), on)?;
            return Ok(None);
        }
        Command::SuspendSource(key, is_suspended) => {
            sources.suspend(lower.cx, id, &key, is_suspended)?;
            return Ok(None);
        }
        Command::TestModule(name, request) => {
            modules.test_chart(lower.cx, id, &name, request)?;
            return Ok(None);
        }
        Command::SyncSource(key) => {
            sources.sync(lower.cx, id, &key)?;
            return Ok(None);
        }
    }))
}
