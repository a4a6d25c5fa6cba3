//! The program's only source of random bits outside the engine: the operating system's.
//!
//! Without random bits nothing safe can be made, so running out of them ends the caller's work with an error, never with
//! weaker bits.

use std::fmt;

/// The operating system gave no random bits.
#[derive(Debug)]
pub struct EntropyError(getrandom::Error);

impl fmt::Display for EntropyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("could not get random bits from the operating system")
    }
}

impl std::error::Error for EntropyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// So many random bytes.
#[expect(clippy::disallowed_methods, reason = "the one home of random bits in the program")]
pub fn random_bytes<const N: usize>() -> Result<[u8; N], EntropyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(EntropyError)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(random_bytes::<32>().unwrap(), random_bytes::<32>().unwrap());
    }
}
