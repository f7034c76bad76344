//! Source-level names of PTX symbols.

use cpp_demangle::{DemangleOptions, Symbol};

/// A symbol's name for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The last identifier: `ok` of `kernel(int*)::ok`, `reduce` of `void ns::reduce<int>(int*)`.
    pub short: String,
    /// All of it, demangled; equal to the symbol when it is not mangled.
    pub full: String,
}

/// Demangles a C++ or Rust symbol. Others are returned as they are.
pub fn demangle(symbol: &str) -> Name {
    // A variable that the compiler has split has the number of the part behind its name.
    let symbol = symbol.split_once("_$_").map_or(symbol, |(whole, _)| whole);
    if let Some(name) = local_variable(symbol) {
        return Name { short: name.into(), full: symbol.into() };
    }
    let full = if is_rust(symbol) {
        rustc_demangle::try_demangle(symbol).ok().map(|name| format!("{name:#}"))
    } else if symbol.starts_with("_Z") {
        let options = DemangleOptions::new().no_return_type();
        Symbol::new(symbol).ok().and_then(|name| name.demangle_with_options(&options).ok())
    } else {
        None
    };
    match full {
        Some(full) => Name { short: last_part(&full).into(), full },
        None => Name { short: symbol.into(), full: symbol.into() },
    }
}

/// Whether rustc made the symbol: the new scheme, or the old one, which ends in a hash.
fn is_rust(symbol: &str) -> bool {
    symbol.starts_with("_R") || (symbol.starts_with("_ZN") && symbol.contains("17h") && symbol.ends_with('E'))
}

/// `ok` of `__cuda_local_var_38556_33_non_const_ok`, as nvcc names static variables of `extern "C"` kernels.
fn local_variable(symbol: &str) -> Option<&str> {
    let rest = symbol.strip_prefix("__cuda_local_var_")?;
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
    let rest = rest.strip_prefix("non_const_").or_else(|| rest.strip_prefix("const_")).unwrap_or(rest);
    (!rest.is_empty()).then_some(rest)
}

/// The last component without parameters and template arguments.
fn last_part(full: &str) -> &str {
    let mut depth = 0i32;
    let (mut start, mut end) = (0, full.len());
    let bytes = full.as_bytes();
    for (i, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'<' | b'{' | b'[' => {
                // The first bracket behind a name ends it; another name may follow behind `::`.
                if depth == 0 && end == full.len() && i > start {
                    end = i;
                }
                depth += 1;
            }
            b')' | b'>' | b'}' | b']' => depth -= 1,
            b':' if depth == 0 && bytes.get(i + 1) == Some(&b':') => {
                start = i + 2;
                end = full.len();
            }
            _ => {}
        }
    }
    let part = full.get(start..end).unwrap_or(full).trim();
    if part.is_empty() { full } else { part }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        let cases = [
            ("plain", "plain", "plain"),
            ("_ZZ27k_device_barrier_no_acquireE2ok", "ok", "k_device_barrier_no_acquire::ok"),
            ("_Z6reducePKfPf", "reduce", "reduce(float const*, float*)"),
            ("_ZZ6reduceIiEvPT_E4tile", "tile", "reduce<int>(int*)::tile"),
            ("_ZN2ns4scanIfLi4EEEvPT_", "scan", "ns::scan<float, 4>(float*)"),
            ("_ZN12_GLOBAL__N_15totalE", "total", "(anonymous namespace)::total"),
            ("__cuda_local_var_38556_33_non_const_ok", "ok", "__cuda_local_var_38556_33_non_const_ok"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "write", "core::fmt::write"),
            ("_ZZ25k_replicated_result_storeE1r_$_0", "r", "k_replicated_result_store::r"),
            ("_Zbroken", "_Zbroken", "_Zbroken"),
        ];
        for (symbol, short, full) in cases {
            assert_eq!(demangle(symbol), Name { short: short.into(), full: full.into() }, "{symbol}");
        }
    }
}
