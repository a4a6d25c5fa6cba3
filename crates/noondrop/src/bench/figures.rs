//! Percentiles of what was measured.

/// Durations in nanoseconds, kept one by one: exact percentiles, and the true maximum.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    sorted: bool,
    nanoseconds: Vec<u64>,
}

impl Durations {
    /// Notes one.
    pub fn push(&mut self, duration: std::time::Duration) {
        self.sorted = false;
        self.nanoseconds.push(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Takes over all of another list.
    pub fn extend(&mut self, other: &Self) {
        self.sorted = false;
        self.nanoseconds.extend_from_slice(&other.nanoseconds);
    }

    /// How many were noted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nanoseconds.len()
    }

    /// Whether none was noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nanoseconds.is_empty()
    }

    /// The duration that so many of a thousand stay at or below, in microseconds; 1000 is the maximum, 0 of none.
    pub fn per_mille_us(&mut self, per_mille: usize) -> f64 {
        if !self.sorted {
            self.nanoseconds.sort_unstable();
            self.sorted = true;
        }
        let Some(last) = self.nanoseconds.len().checked_sub(1) else { return 0.0 };
        let place =
            (self.nanoseconds.len() * per_mille).div_ceil(1_000).saturating_sub(1).min(last);
        rounded(self.nanoseconds[place] as f64 / 1_000.0)
    }

    /// The same in milliseconds.
    pub fn per_mille_ms(&mut self, per_mille: usize) -> f64 {
        rounded(self.per_mille_us(per_mille) / 1_000.0)
    }
}

/// Three decimals: more would be noise.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let mut durations = Durations::default();
        for us in (1..=1_000).rev() {
            durations.push(Duration::from_micros(us));
        }
        let found = [500, 990, 999, 1_000].map(|per_mille| durations.per_mille_us(per_mille));
        let right = [500.0, 990.0, 999.0, 1_000.0];
        assert!(found.iter().zip(right).all(|(found, right)| (found - right).abs() < 1e-9));
        assert!(Durations::default().per_mille_us(500) < f64::EPSILON);
    }
}
