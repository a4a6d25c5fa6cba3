//! The description of the API that the server hands out; checked in at the root of the repository.

/// OpenAPI 3.1, JSON.
pub const TEXT: &str = include_str!("../../../../openapi.json");
