//! A request that an authorizer is asked about.

/// A request that an authorizer is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessCheck {
    /// Another user than that of the request: namespace and name of a service account.
    pub account: Option<(String, String)>,
    /// A path that is no resource.
    pub path: Option<String>,
    /// The API group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The part of the resource.
    pub subresource: String,
    /// The namespace; none for all of them.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// What would be done.
    pub verb: String,
}
