//! The routes, as `/discovery` and the page list them.

/// The routes of the TCP port.
pub(super) const PORT: &[&str] = &[
    "/",
    "/discovery",
    "/graph",
    "/healthz",
    "/journal",
    "/metrics",
    "/metrics/hooks",
    "/queue",
    "/readyz",
    "/status",
    "/status/converge",
];

/// The routes of the socket with their methods, a line each.
pub(super) const SOCKET: &str = "GET /chart/archive\nGET /chart/list.{json,yaml,text}\nGET /chart/outdated.{json,yaml,text}\nGET /chart/package\n\
GET /chart/plan\nGET /chart/values\nGET /chart/versions.{json,yaml,text}\nGET /config/list.{json,yaml,text}\nGET /discovery\nGET /global/config.{json,yaml,text}\n\
GET /global/list.{json,yaml,text}\nGET /global/patches.{json,yaml,text}\nGET /global/snapshots.{json,yaml,text}\n\
GET /global/values.{json,yaml,text}\nGET /graph\nGET /journal.{json,yaml,text}\nGET /module/list.{json,yaml,text}\n\
GET /module/releases\nGET /module/resource-monitor.{json,yaml,text}\nGET /module/{name}/config.{json,yaml,text}\n\
GET /module/{name}/history\nGET /module/{name}/patches.{json,yaml,text}\nGET /module/{name}/render\n\
GET /module/{name}/snapshots.{json,yaml,text}\nGET /module/{name}/status.{json,yaml,text}\n\
GET /module/{name}/values.{json,yaml,text}\nGET /queue/list.{json,yaml,text}\nGET /queue/main.{json,yaml,text}\n\
GET /source/list.{json,yaml,text}\nGET /status.{json,yaml,text}\nGET /why/module/{name}\nGET /why/queue/{name}\n\
GET /why/source/{name}\nGET /why/task/{id}\nPOST /config/set\nPOST /converge\n\
POST /module/{name}/test\nPOST /module/{name}/{disable,enable,purge,resume,run}\nPOST /source/plan.{json,text}\nPOST /source/{name}/{pause,resume,sync}\n";
