//! Random choices from a seed, the same in every run.

/// A seeded generator with the choices that tests make.
pub struct Random(fastrand::Rng);

impl Random {
    /// A generator that begins with a seed.
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// From 0 up to, but not including, `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }

    /// From 0 up to, but not including, 1.
    pub fn fraction(&mut self) -> f64 {
        self.0.f64()
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A random word. Two calls return the same one with a chance of one in 26^14.
    pub fn word(&mut self) -> String {
        (0..14).map(|_| self.0.lowercase()).collect()
    }
}
