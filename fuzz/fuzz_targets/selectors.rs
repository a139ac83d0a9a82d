#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| kubewright_fuzz::targets::selectors::run(input));
