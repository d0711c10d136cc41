"""Which files count unless `ragx.toml` says otherwise; apart, so that settings load quickly."""

from __future__ import annotations

__all__ = ["DEFAULT_EXCLUDE", "DEFAULT_INCLUDE"]

_DOCUMENTS = (
    *("*.pdf", "*.docx", "*.pptx", "*.xlsx", "*.odt", "*.odp", "*.ods"),
    *("*.ipynb", "*.htm", "*.xhtml", "*.epub", "*.rtf", "*.eml"),
)

DEFAULT_INCLUDE: tuple[str, ...] = (
    *("*.md", "*.mdx", "*.markdown", "*.rst", "*.txt", "*.adoc", "*.org"),
    *_DOCUMENTS,
    *(
        "*.py",
        "*.pyi",
        "*.pyx",
        "*.js",
        "*.jsx",
        "*.mjs",
        "*.cjs",
        "*.ts",
        "*.tsx",
        "*.mts",
        "*.cts",
    ),
    *("*.vue", "*.svelte", "*.astro", "*.html", "*.css", "*.scss", "*.less"),
    *("*.go", "*.rs", "*.java", "*.kt", "*.kts", "*.scala", "*.groovy", "*.gradle"),
    *("*.c", "*.h", "*.cc", "*.cpp", "*.cxx", "*.hh", "*.hpp", "*.hxx", "*.m", "*.mm"),
    *("*.cs", "*.fs", "*.vb", "*.rb", "*.php", "*.pl", "*.pm", "*.lua", "*.r", "*.R", "*.jl"),
    *("*.ex", "*.exs", "*.erl", "*.hrl", "*.hs", "*.elm", "*.clj", "*.cljs", "*.ml", "*.mli"),
    *("*.nim", "*.zig", "*.d", "*.dart", "*.swift", "*.sol", "*.f90", "*.tcl", "*.el", "*.lisp"),
    *("*.sh", "*.bash", "*.zsh", "*.fish", "*.ps1", "*.bat", "*.sql", "*.graphql", "*.proto"),
    *("*.json", "*.yaml", "*.yml", "*.toml", "*.ini", "*.tf", "*.hcl", "*.nix", "*.cmake", "*.mk"),
    *("Dockerfile", "Dockerfile.*", "Makefile", "GNUmakefile", "CMakeLists.txt", "Justfile"),
)

DEFAULT_EXCLUDE: tuple[str, ...] = (
    # Lock files.
    *("*.lock", "*.lockb", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum"),
    *("packages.lock.json", "deno.lock", "bun.lock", "gradle.lockfile", "Package.resolved"),
    # Dependency manifests: names and versions, which match queries about anything.
    *("package.json", "go.mod", "requirements*.txt", "constraints*.txt", "Pipfile", "Gemfile"),
    *("composer.json", "pom.xml", "bower.json", "environment.yml"),
    # Licences.
    *("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "UNLICENSE*"),
    # Generated for machines.
    *("*.min.*", "*.map"),
    # Build output at the root only: elsewhere real code lives in directories of these names.
    *("/dist/", "/build/", "/target/", "/coverage/", "/vendor/"),
)
