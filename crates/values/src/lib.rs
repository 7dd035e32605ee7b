//! Values of modules: Go-compatible YAML, layers, JSON Patch and OpenAPI schemas.
