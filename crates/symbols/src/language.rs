//! The languages and formats of files, recognized by the names of the files.

use crate::cplusplus::is_cplusplus;
use crate::languages;
use crate::rule::Grammar;

/// A programming language or a format.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Language(u8);

/// What is known about a language.
struct Row {
    /// Its number. Numbers are stored on disk: a row keeps its own for ever, and new rows go to the end.
    id: u8,
    name: &'static str,
    /// What else it is called.
    aliases: &'static [&'static str],
    /// How its files' names end, after a dot.
    extensions: &'static [&'static str],
    /// Whole names of its files.
    files: &'static [&'static str],
    /// How to find what it defines.
    grammar: Option<&'static Grammar>,
}

const fn row(id: u8, name: &'static str, extensions: &'static [&'static str]) -> Row {
    Row { id, name, aliases: &[], extensions, files: &[], grammar: None }
}

impl Row {
    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn files(mut self, files: &'static [&'static str]) -> Self {
        self.files = files;
        self
    }

    const fn symbols(mut self, grammar: &'static Grammar) -> Self {
        self.grammar = Some(grammar);
        self
    }
}

/// Every language, at its number.
#[rustfmt::skip]
static LANGUAGES: &[Row] = &[
    row(0, "text", &["txt", "text", "log"]).also(&["plain", "plaintext"]).files(&["readme", "license", "copying", "authors", "changelog"]),
    row(1, "rust", &["rs"]).also(&["rs"]).symbols(&languages::rust::GRAMMAR),
    row(2, "python", &["py", "pyi", "pyw"]).also(&["py", "python3"]).files(&["sconstruct", "sconscript"]).symbols(&languages::python::GRAMMAR),
    row(3, "javascript", &["js", "jsx", "mjs", "cjs"]).also(&["js", "jsx", "node", "ecmascript"]).symbols(&languages::javascript::GRAMMAR),
    row(4, "typescript", &["ts", "mts", "cts"]).also(&["ts"]).symbols(&languages::typescript::GRAMMAR),
    row(5, "tsx", &["tsx"]).also(&["typescriptreact"]).symbols(&languages::tsx::GRAMMAR),
    row(6, "go", &["go"]).also(&["golang"]).symbols(&languages::go::GRAMMAR),
    row(7, "java", &["java"]).symbols(&languages::java::GRAMMAR),
    row(8, "c", &["c", "h"]).symbols(&languages::c::GRAMMAR),
    row(9, "cpp", &["cpp", "cc", "cxx", "c++", "hpp", "hh", "hxx", "h++", "ipp", "tpp", "inl", "cu", "cuh"]).also(&["c++", "cxx", "cplusplus"]).symbols(&languages::cpp::GRAMMAR),
    row(10, "csharp", &["cs", "csx"]).also(&["c#", "cs", "dotnet"]).symbols(&languages::csharp::GRAMMAR),
    row(11, "ruby", &["rb", "rake", "gemspec", "ru", "podspec"]).also(&["rb"]).files(&["rakefile", "gemfile", "guardfile", "podfile", "vagrantfile", "brewfile", "fastfile"]).symbols(&languages::ruby::GRAMMAR),
    row(12, "php", &["php", "phtml", "php5", "php7", "phps"]).symbols(&languages::php::GRAMMAR),
    row(13, "kotlin", &["kt", "kts"]).also(&["kt"]).symbols(&languages::kotlin::GRAMMAR),
    row(14, "swift", &["swift"]).symbols(&languages::swift::GRAMMAR),
    row(15, "scala", &["scala", "sc", "sbt"]).symbols(&languages::scala::GRAMMAR),
    row(16, "lua", &["lua", "rockspec"]).symbols(&languages::lua::GRAMMAR),
    row(17, "bash", &["sh", "bash", "zsh", "ksh", "bats", "ebuild"]).also(&["sh", "shell", "zsh", "ksh"]).files(&[".bashrc", ".bash_profile", ".bash_aliases", ".profile", ".zshrc", ".zprofile", ".zshenv", "pkgbuild", "configure"]).symbols(&languages::bash::GRAMMAR),
    row(18, "json", &["json", "jsonc", "json5", "jsonl", "ndjson", "geojson", "webmanifest", "ipynb"]).also(&["jsonc", "json5", "jsonl"]).files(&["composer.lock", ".babelrc", ".eslintrc", ".prettierrc"]),
    row(19, "yaml", &["yaml", "yml"]).also(&["yml"]).files(&[".clang-format", ".clang-tidy"]),
    row(20, "toml", &["toml"]).files(&["cargo.lock", "poetry.lock", "pipfile", "uv.lock"]),
    row(21, "markdown", &["md", "markdown", "mdx", "mkd"]).also(&["md"]),
    row(22, "html", &["html", "htm", "xhtml"]).also(&["htm"]),
    row(23, "css", &["css"]),
    row(24, "scss", &["scss", "sass"]).also(&["sass"]),
    row(25, "less", &["less"]),
    row(26, "sql", &["sql", "ddl", "psql"]).also(&["mysql", "postgresql", "sqlite"]),
    row(27, "make", &["mk", "mak", "make"]).also(&["makefile"]).files(&["makefile", "gnumakefile", "kbuild"]),
    row(28, "cmake", &["cmake"]).files(&["cmakelists.txt"]),
    row(29, "dockerfile", &["dockerfile"]).also(&["docker", "containerfile"]).files(&["dockerfile", "containerfile"]),
    row(30, "xml", &["xml", "xsd", "xsl", "xslt", "svg", "plist", "csproj", "fsproj", "vcxproj", "props", "targets", "resx", "xaml"]).also(&["svg"]),
    row(31, "assembly", &["s", "asm", "nasm"]).also(&["asm", "gas", "nasm"]),
    row(32, "objectivec", &["m", "mm"]).also(&["objc", "objective-c", "obj-c"]),
    row(33, "perl", &["pl", "pm", "t", "pod"]).also(&["pl"]),
    row(34, "r", &["r", "rmd"]),
    row(35, "julia", &["jl"]).also(&["jl"]),
    row(36, "haskell", &["hs", "lhs"]).also(&["hs"]),
    row(37, "ocaml", &["ml", "mli"]).also(&["ml"]),
    row(38, "fsharp", &["fs", "fsi", "fsx"]).also(&["f#", "fs"]),
    row(39, "erlang", &["erl", "hrl"]).also(&["erl"]).files(&["rebar.config"]),
    row(40, "elixir", &["ex", "exs"]).also(&["ex"]),
    row(41, "elm", &["elm"]),
    row(42, "clojure", &["clj", "cljs", "cljc", "edn"]).also(&["clj"]),
    row(43, "lisp", &["lisp", "lsp", "cl", "el"]).also(&["common-lisp", "elisp", "emacs-lisp"]),
    row(44, "scheme", &["scm", "ss", "rkt"]).also(&["racket"]),
    row(45, "dart", &["dart"]),
    row(46, "groovy", &["groovy", "gradle", "gvy"]).also(&["gradle"]).files(&["jenkinsfile"]),
    row(47, "zig", &["zig", "zon"]),
    row(48, "nim", &["nim", "nims", "nimble"]),
    row(49, "d", &["d", "di"]).also(&["dlang"]),
    row(50, "verilog", &["v", "sv", "svh", "vh"]).also(&["systemverilog"]),
    row(51, "vhdl", &["vhd", "vhdl"]),
    row(52, "fortran", &["f", "f90", "f95", "f03", "f08", "for", "f77"]),
    row(53, "pascal", &["pas", "pp", "dpr", "lpr"]).also(&["delphi"]),
    row(54, "ada", &["adb", "ads", "ada"]),
    row(55, "cobol", &["cob", "cbl", "cpy"]),
    row(56, "powershell", &["ps1", "psm1", "psd1"]).also(&["ps1", "pwsh"]),
    row(57, "batch", &["bat", "cmd"]).also(&["bat", "cmd"]),
    row(58, "fish", &["fish"]),
    row(59, "vim", &["vim"]).also(&["viml", "vimscript"]).files(&[".vimrc", "_vimrc"]),
    row(60, "nix", &["nix"]).files(&["flake.lock"]),
    row(61, "terraform", &["tf", "tfvars", "hcl"]).also(&["hcl"]),
    row(62, "protobuf", &["proto"]).also(&["proto"]),
    row(63, "graphql", &["graphql", "gql"]).also(&["gql"]),
    row(64, "thrift", &["thrift"]),
    row(65, "vue", &["vue"]),
    row(66, "svelte", &["svelte"]),
    row(67, "astro", &["astro"]),
    row(68, "solidity", &["sol"]).also(&["sol"]),
    row(69, "webassembly", &["wat", "wast"]).also(&["wasm", "wat"]),
    row(70, "glsl", &["glsl", "vert", "frag", "comp", "geom", "hlsl", "wgsl", "metal"]).also(&["hlsl", "wgsl"]),
    row(71, "latex", &["tex", "sty", "cls", "bib"]).also(&["tex"]),
    row(72, "restructuredtext", &["rst", "rest"]).also(&["rst"]),
    row(73, "asciidoc", &["adoc", "asciidoc"]).also(&["adoc"]),
    row(74, "org", &["org"]),
    row(75, "ini", &["ini", "cfg", "conf", "desktop", "service", "editorconfig"]).also(&["cfg", "conf"]).files(&[".editorconfig", ".gitconfig", ".gitmodules", ".npmrc"]),
    row(76, "properties", &["properties", "env"]).also(&["dotenv"]).files(&[".env"]),
    row(77, "csv", &["csv", "tsv", "psv"]).also(&["tsv"]),
    row(78, "diff", &["diff", "patch"]).also(&["patch"]),
    row(79, "ignore", &["gitignore", "dockerignore"]).also(&["gitignore"]).files(&[".gitignore", ".dockerignore", ".npmignore", ".ignore", ".gitattributes"]),
    row(80, "kconfig", &[]).files(&["kconfig"]),
    row(81, "devicetree", &["dts", "dtsi", "dtso"]).also(&["dts"]),
    row(82, "linkerscript", &["ld", "lds"]).also(&["ld"]),
    row(83, "starlark", &["bzl", "star", "bazel"]).also(&["bazel", "bzl"]).files(&["build", "workspace", "buck"]),
    row(84, "meson", &[]).files(&["meson.build", "meson_options.txt", "meson.options"]),
    row(85, "awk", &["awk"]).also(&["gawk"]),
    row(86, "tcl", &["tcl", "tk"]),
    row(87, "handlebars", &["hbs", "handlebars", "mustache"]).also(&["mustache"]),
    row(88, "jinja", &["j2", "jinja", "jinja2"]).also(&["j2"]),
    row(89, "erb", &["erb"]),
    row(90, "cue", &["cue"]),
    row(91, "jsonnet", &["jsonnet", "libsonnet"]),
    row(92, "crystal", &["cr"]),
    row(93, "gdscript", &["gd"]),
];

const CPLUSPLUS: Language = Language(9);

impl Language {
    /// The language of a file by its path, of which only the last part counts.
    ///
    /// ```
    /// # use pintle_symbols::Language;
    /// let language = Language::of_path(b"src/main.RS").unwrap();
    /// assert_eq!(language.name(), "rust");
    /// assert_eq!(Language::of_path(b"build/Makefile"), Language::from_name("make"));
    /// assert_eq!(Language::of_path(b"photo.jpeg"), None);
    /// ```
    pub fn of_path(path: &[u8]) -> Option<Self> {
        let start = memchr::memrchr2(b'/', b'\\', path).map_or(0, |slash| slash + 1);
        let file = &path[start..];
        let by_whole_name = LANGUAGES
            .iter()
            .find(|row| row.files.iter().any(|name| file.eq_ignore_ascii_case(name.as_bytes())));
        let by_extension = || {
            let extension = &file[memchr::memrchr(b'.', file)? + 1..];
            LANGUAGES.iter().find(|row| {
                row.extensions.iter().any(|known| extension.eq_ignore_ascii_case(known.as_bytes()))
            })
        };
        // `Dockerfile.release`, `Makefile.in`.
        let by_first_part = || {
            let first = &file[..memchr::memchr(b'.', file)?];
            let stems: &[&[u8]] = &[b"dockerfile", b"makefile", b"kconfig", b"jenkinsfile"];
            let stem = stems.iter().find(|stem| first.eq_ignore_ascii_case(stem))?;
            LANGUAGES.iter().find(|row| row.files.iter().any(|name| name.as_bytes() == *stem))
        };
        by_whole_name.or_else(by_extension).or_else(by_first_part).map(|row| Self(row.id))
    }

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The language of this name, or of this other name that it has; in small or capital letters.
    pub fn from_name(name: &str) -> Option<Self> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        let row = LANGUAGES.iter().find(|row| is(row.name));
        row.or_else(|| LANGUAGES.iter().find(|row| row.aliases.iter().any(|alias| is(alias))))
            .map(|row| Self(row.id))
    }

    /// Its number, which stays the same for ever.
    pub fn id(self) -> u8 {
        self.0
    }

    /// The language with this number.
    pub fn from_id(id: u8) -> Option<Self> {
        LANGUAGES.get(usize::from(id)).map(|row| Self(row.id))
    }

    /// Whether an [`Outliner`](crate::Outliner) can find what its texts define.
    pub fn has_symbols(self) -> bool {
        self.row().grammar.is_some()
    }

    /// All languages, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        LANGUAGES.iter().map(|row| Self(row.id))
    }

    /// How to find what its texts define.
    pub(crate) fn grammar(self) -> Option<&'static Grammar> {
        self.row().grammar
    }

    /// The language that a text really is in, where files of two have the same names.
    pub(crate) fn by_content(self, text: &[u8]) -> Self {
        let is_c = self.row().grammar.is_some_and(|grammar| std::ptr::eq(grammar, &languages::c::GRAMMAR));
        if is_c && is_cplusplus(text) { CPLUSPLUS } else { self }
    }

    fn row(self) -> &'static Row {
        &LANGUAGES[usize::from(self.0)]
    }
}

impl std::fmt::Debug for Language {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Every language that has a grammar, by name.
#[cfg(test)]
pub(crate) fn grammars() -> impl Iterator<Item = (&'static str, &'static Grammar)> {
    LANGUAGES.iter().filter_map(|row| Some((row.name, row.grammar?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_row_is_at_its_number() {
        for (index, row) in LANGUAGES.iter().enumerate() {
            assert_eq!(usize::from(row.id), index, "{}", row.name);
            let language = Language::from_id(row.id).expect("known");
            assert_eq!((language.id(), language.name()), (row.id, row.name));
        }
        assert_eq!(Language::from_id(LANGUAGES.len() as u8), None);
        assert_eq!(Language::all().count(), LANGUAGES.len());
    }

    #[test]
    fn a_header_is_in_the_language_of_its_text() {
        let c = Language::from_name("c").expect("known");
        assert_eq!(c.by_content(b"int a;").name(), "c");
        assert_eq!(c.by_content(b"#pragma once\nnamespace a {\nint b;\n}\n").name(), "cpp");
        let rust = Language::from_name("rust").expect("known");
        assert_eq!(rust.by_content(b"namespace a {\n}\n").name(), "rust");
    }

    #[test]
    fn no_name_extension_or_file_stands_for_two_languages() {
        let (mut names, mut extensions, mut files) = (HashSet::new(), HashSet::new(), HashSet::new());
        for row in LANGUAGES {
            assert!(names.insert(row.name), "{}", row.name);
            assert!(row.aliases.iter().all(|alias| names.insert(alias)), "{}", row.name);
            assert!(row.extensions.iter().all(|extension| extensions.insert(extension)), "{}", row.name);
            assert!(row.files.iter().all(|file| files.insert(file)), "{}", row.name);
            let words = row.aliases.iter().chain(row.extensions).chain(row.files).chain([&row.name]);
            assert!(words.into_iter().all(|word| word.to_lowercase() == **word), "{}", row.name);
        }
    }

    #[test]
    fn a_language_is_known_by_what_people_call_it() {
        for (alias, name) in [
            ("c++", "cpp"),
            ("C#", "csharp"),
            ("js", "javascript"),
            ("ts", "typescript"),
            ("py", "python"),
            ("rb", "ruby"),
            ("rs", "rust"),
            ("sh", "bash"),
            ("golang", "go"),
            ("Rust", "rust"),
            ("yml", "yaml"),
        ] {
            assert_eq!(Language::from_name(alias).map(Language::name), Some(name), "{alias}");
        }
        assert_eq!(Language::from_name(""), None);
        assert_eq!(Language::from_name("klingon"), None);
    }

    #[test]
    fn a_language_is_recognized_by_whole_name_extension_or_stem() {
        for (path, name) in [
            (&b"a/b.tsx"[..], "tsx"),
            (b"x.H", "c"),
            (b"CMakeLists.txt", "cmake"),
            (b"notes.txt", "text"),
            (b"Dockerfile", "dockerfile"),
            (b"Dockerfile.release", "dockerfile"),
            (b"Makefile.am", "make"),
            (b"C:\\src\\a.cs", "csharp"),
            (b"\xff\xfe.py", "python"),
            (b".bashrc", "bash"),
            (b"a.d.ts", "typescript"),
            (b"Cargo.lock", "toml"),
            (b"arch/x86/Kconfig", "kconfig"),
        ] {
            assert_eq!(Language::of_path(path).map(Language::name), Some(name), "{path:?}");
        }
        for path in [&b""[..], b"/", b".", b"rs", b"a.", b"src.rs/", b"photo.jpeg"] {
            assert_eq!(Language::of_path(path), None, "{path:?}");
        }
    }
}
