//! Chances out of a seed: the same seed makes the same crowd. Not for secrets.

use std::time::Duration;

/// A stream of numbers that look like chance.
#[derive(Clone, Debug)]
pub struct Chances(u64);

impl Chances {
    /// The stream of one buyer.
    #[must_use]
    pub fn of(seed: u64, buyer: u32) -> Self {
        let mut chances = Self(seed ^ 0x6e6f_6f6e_6472_6f70);
        let mixed = chances.next() ^ u64::from(buyer).wrapping_mul(0xd134_2543_de82_ef95);
        Self(mixed)
    }

    /// `SplitMix64` (Steele, Lea, Flood 2014): small, and each state leads to one other.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 32 of them.
    pub fn bits(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// At least 0, below 1.
    pub fn draw(&mut self) -> f64 {
        f64::from(self.bits()) / (f64::from(u32::MAX) + 1.0)
    }

    /// Happens with this probability.
    pub fn hit(&mut self, share: f64) -> bool {
        self.draw() < share
    }

    /// Some time, shorter than this.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_and_shares_come_about() {
        let drawn = |seed| (0..4).map(|b| Chances::of(seed, b).bits()).collect::<Vec<_>>();
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        let hits = (0..10_000).filter(|&buyer| Chances::of(1, buyer).hit(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
    }
}
