//! Chart repositories: the work on Repositories, groups of them, Charts, and on the charts of modules. See docs/charts.md.
//!
//! ```text
//! RepoGroup ─▶ Repository ─▶ index maps
//!                   │             │
//!                   ▼             ▼
//!                 Chart ─▶ Resolve ─▶ Store(n) ─▶ Dependents(n) ─▶ Status
//!                   ▲                     │
//! module.yaml ──────┘                     ▼
//!                                 pin ─▶ the module's package
//! ```
//!
//! The work on an object looks at what is known and does the first thing that is not as it should be, until there is nothing
//! left. So it may be asked for at any time and any number of times.

mod announcements;
mod chart;
mod chart_status;
mod chart_steps;
mod chart_work;
mod dependents;
mod group;
mod group_work;
mod index_request;
mod known;
mod lost_package;
mod module_chart;
mod module_dependencies;
mod module_work;
mod object;
mod patches;
mod repositories;
mod repository_work;
mod view;
mod watches;
mod work;

pub(crate) use repositories::Repositories;
