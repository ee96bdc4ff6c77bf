import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Paths relative to this package's package.json, each with the text that stands in for that file. */
type Replacements = Readonly<Record<string, string>>;

/** A compiler of the service's sources, with the options of the build. */
export interface SourceCompiler {
  /**
   * Compiles files with the replacements; nothing is written.
   *
   * @param files - relative to this package's package.json; what they import is read but not checked
   * @returns an error a line, sorted: file, code, message with its details
   */
  readonly errors: (files: readonly string[], replacements?: Replacements) => string[];
}

/** Unchanged files are read and parsed once, so that each compilation after the first takes a fraction of a second. */
export function createSourceCompiler(): SourceCompiler {
  const { options } = readConfig();
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile.bind(host);
  const parsed = new Map<string, ts.SourceFile | undefined>();
  let replaced: Replacements = {};
  let previous: ts.Program | undefined;

  host.getSourceFile = (path, languageVersion, ...rest) => {
    const text = replaced[relative(path)];
    if (text !== undefined) return ts.createSourceFile(path, text, languageVersion);
    if (!parsed.has(path)) parsed.set(path, read(path, languageVersion, ...rest));
    return parsed.get(path);
  };

  return {
    errors: (files, replacements = {}) => {
      replaced = replacements;
      const rootNames = files.map((file) => ROOT + file);
      const program = ts.createProgram(rootNames, options, host, previous);
      previous = program;
      const unused = Object.keys(replacements).filter((path) => program.getSourceFile(ROOT + path) === undefined);
      if (unused.length > 0) throw new Error(`not part of the program: ${unused.join(', ')}`);
      const roots = rootNames.map((name) => program.getSourceFile(name));
      return [
        ...program.getOptionsDiagnostics(),
        ...roots.flatMap((root) => [...program.getSyntacticDiagnostics(root), ...program.getSemanticDiagnostics(root)]),
      ]
        .map(asLine)
        .toSorted();
    },
  };
}

function readConfig(): ts.ParsedCommandLine {
  const parsed = ts.parseJsonSourceFileConfigFileContent(
    ts.readJsonConfigFile(`${ROOT}tsconfig.json`, (path) => ts.sys.readFile(path)),
    ts.sys,
    ROOT,
    { noEmit: true },
  );
  for (const diagnostic of parsed.errors) throw new Error(asLine(diagnostic));
  return parsed;
}

function relative(path: string): string {
  return path.startsWith(ROOT) ? path.slice(ROOT.length) : path;
}

function asLine({ file, code, messageText }: ts.Diagnostic): string {
  const message = ts.flattenDiagnosticMessageText(messageText, ' ').replace(/\s+/g, ' ');
  return `${file ? relative(file.fileName) : 'program'}: TS${code}: ${message}`;
}
