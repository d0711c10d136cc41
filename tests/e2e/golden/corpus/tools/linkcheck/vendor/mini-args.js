// mini-args: a copy kept here so that the checker needs no package manager.

/**
 * Split command line arguments into flags and positional ones.
 * `--name=value` and `--name` count as flags, `--no-name` as false; `--` ends flags.
 */
export function parseArgs(argv) {
  const flags = {};
  const positional = [];
  let open = true;
  for (const argument of argv) {
    if (open && argument === "--") {
      open = false;
    } else if (open && argument.startsWith("--no-")) {
      flags[argument.slice(5)] = false;
    } else if (open && argument.startsWith("--")) {
      const [name, ...value] = argument.slice(2).split("=");
      flags[name] = value.length ? value.join("=") : true;
    } else {
      positional.push(argument);
    }
  }
  return { flags, positional };
}
