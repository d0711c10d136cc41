#!/usr/bin/env node
// Report Markdown links that lead nowhere: missing files and missing headings.

import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "./vendor/mini-args.js";
import { uniqueSlug } from "./slug.js";

const LINK = /\[[^\]]*\]\(([^)\s]+)\)/g;
const EXTERNAL = /^[a-z][a-z0-9+.-]*:/i;

/** Every Markdown file below a directory, hidden directories left out. */
export function* markdownFiles(directory) {
  for (const name of readdirSync(directory).sort()) {
    if (name.startsWith(".")) continue;
    const path = join(directory, name);
    if (statSync(path).isDirectory()) yield* markdownFiles(path);
    else if (name.endsWith(".md")) yield path;
  }
}

/** The anchors that a page offers. */
export function anchorsOf(path) {
  const page = { path };
  const headings = readFileSync(path, "utf8").matchAll(/^#{1,6}\s+(.+)$/gm);
  return new Set(Array.from(headings, (match) => uniqueSlug(page, match[1])));
}

/** Broken links of one page, each with the line it stands on. */
export function brokenLinks(path) {
  const broken = [];
  readFileSync(path, "utf8")
    .split("\n")
    .forEach((text, index) => {
      for (const [, target] of text.matchAll(LINK)) {
        if (EXTERNAL.test(target)) continue;
        const [file, anchor] = target.split("#");
        const full = file ? resolve(dirname(path), file) : path;
        if (!existsSync(full)) broken.push({ line: index + 1, target, why: "no such file" });
        else if (anchor && full.endsWith(".md") && !anchorsOf(full).has(anchor))
          broken.push({ line: index + 1, target, why: "no such heading" });
      }
    });
  return broken;
}

function main(argv) {
  const { positional, flags } = parseArgs(argv);
  const root = resolve(positional[0] ?? ".");
  let total = 0;
  for (const path of markdownFiles(root)) {
    for (const { line, target, why } of brokenLinks(path)) {
      total += 1;
      if (!flags.quiet) console.log(`${relative(root, path)}:${line}: ${target} (${why})`);
    }
  }
  return total ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2));
