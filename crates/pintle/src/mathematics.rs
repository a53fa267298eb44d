//! The functions of the C library's `libm` that this program calls, as a part of the program: a library that is loaded
//! for three functions makes every start longer by a tenth of a search (docs/design/search.md has the figures).
//! Whatever else is called one day comes from the library again.

#![allow(unsafe_code)]

// SAFETY: they have the types and the meaning that C gives to these names.
#[unsafe(no_mangle)]
extern "C" fn log(x: f64) -> f64 {
    libm::log(x)
}

// SAFETY: see `log`.
#[unsafe(no_mangle)]
extern "C" fn log2(x: f64) -> f64 {
    libm::log2(x)
}

// SAFETY: see `log`.
#[unsafe(no_mangle)]
extern "C" fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

#[cfg(test)]
mod tests {
    use std::{f64::consts::E, hint::black_box};

    #[test]
    fn logarithms_and_powers_are_what_they_are_everywhere() {
        let [one, two, eight] = [1.0_f64, 2.0, 8.0].map(black_box);
        assert_eq!((one.ln(), black_box(E).ln(), eight.log2()), (0.0, 1.0, 3.0));
        assert_eq!((two.powf(eight), eight.powf(-one), two.powf(0.5)), (256.0, 0.125, two.sqrt()));
        assert!(black_box(-1.0_f64).ln().is_nan() && black_box(0.0_f64).ln() == f64::NEG_INFINITY);
    }
}
