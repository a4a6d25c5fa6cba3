//! Configuration: what can be set, where a value came from, and whether it may be so.
//!
//! # Layout
//!
//! * [`settings`]: the shape of the configuration · `config.default.toml`: the values, which are also the documentation
//! * [`load`]: defaults < file < environment variables < flags, and the origin of each value
//! * [`check`]: every bound, with messages that name the setting and its bound
//! * [`error`]: what can be wrong
//!
//! Nothing here reads a secret or decides an outcome: key files are read by [`crate::auth`], and settings that can change
//! an outcome (`[retention]`) are only proposals that the log takes up as facts.

pub mod check;
pub mod error;
pub mod load;
pub mod settings;

pub use error::{ConfigError, Problem};
pub use load::{Flag, Listed, Loaded, Sources};
pub use settings::{
    EngineSettings, HiddenText, JwtKeySettings, JwtSettings, LimitSettings, LogFormat, LogSettings,
    PrincipalSettings, RetentionSettings, SecretSettings, ServerSettings, Settings,
    SigningAlgorithm, StoreSettings,
};

/// The commented file with every default, as it is built into the program.
pub const DEFAULT_TOML: &str = include_str!("../config.default.toml");

/// The shop of a credential that names none.
pub const DEFAULT_SHOP: &str = "main";
