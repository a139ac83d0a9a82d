//! The README shows this program and its test.

const README: &str = include_str!("../../../README.md");

#[test]
fn the_readme_shows_the_program_and_its_test() {
    for (file, text) in
        [("src/main.rs", include_str!("../src/main.rs")), ("src/tests.rs", include_str!("../src/tests.rs"))]
    {
        assert!(
            README.contains(&format!("```rust\n{text}```")),
            "README.md and examples/greeter/{file} differ"
        );
    }
}
