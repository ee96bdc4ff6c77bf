import { Command, CommanderError, Help } from 'commander';
import { ConfigError } from '../config/config.js';
import { redactSecrets } from '../keys/api-key.js';
import { printableLines } from '../platform/text/plain-text.js';
import { readBuild } from '../platform/process/package-root.js';
import { OperatorError, UsageError, withAdvice } from '../errors.js';
import type { CommandContext, RegisterCommand } from './context.js';
import { addExamples, HELP_WIDTH } from './output/help.js';

/** The commands. Only the command that the arguments name is loaded: all of them take a third of a second. */
const COMMANDS: Readonly<Record<string, () => Promise<RegisterCommand>>> = {
  serve: async () => (await import('./server/serve.js')).registerServe,
  health: async () => (await import('./server/health.js')).registerHealth,
  migrate: async () => (await import('./server/migrate.js')).registerMigrate,
  import: async () => (await import('./catalogue/import.js')).registerImport,
  export: async () => (await import('./catalogue/export.js')).registerExport,
  mirror: async () => (await import('./mirrors/mirror.js')).registerMirror,
  feed: async () => (await import('./catalogue/feed.js')).registerFeed,
  plans: async () => (await import('./keys/plans.js')).registerPlans,
  developers: async () => (await import('./developers/developers.js')).registerDevelopers,
  keys: async () => (await import('./keys/keys.js')).registerKeys,
  events: async () => (await import('./developers/events.js')).registerEvents,
  notices: async () => (await import('./server/notices.js')).registerNotices,
  stats: async () => (await import('./catalogue/stats.js')).registerStats,
  usage: async () => (await import('./developers/usage.js')).registerUsage,
  requests: async () => (await import('./developers/requests.js')).registerRequests,
  operator: async () => (await import('./server/operator.js')).registerOperator,
};

/** A command in a text of the program, or the name of the program in its usage. */
const CALL = new RegExp(`\\b(?<!npx --no -- )catalog (?=\\[|--help|(?:${Object.keys(COMMANDS).join('|')})\\b)`, 'g');

export const EXIT_FAILED = 1;
const EXIT_MISUSE = 2;

/**
 * Runs one command to its end.
 *
 * @param args - without the program's own name
 * @param context - the process, as far as commands use it
 * @returns the exit code: 0, 1 when the command failed, 2 when the arguments are wrong. A failure goes to stderr.
 */
export async function runCommand(args: readonly string[], context: CommandContext): Promise<number> {
  const { stderr, command } = context;
  try {
    const program = await createProgram(args[0], context);
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    // Commander has already written the error or the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_MISUSE;
    stderr.write(`catalog: ${asStarted(printableLines(await textOf(error)), command)}\n`);
    return error instanceof UsageError ? EXIT_MISUSE : EXIT_FAILED;
  }
}

/**
 * Creates the program with its commands.
 *
 * @param name - of the only command to load; undefined and unknown names load all of them
 */
export async function createProgram(name: string | undefined, context: CommandContext): Promise<Command> {
  const { stdout, stderr, packageRoot, nodeVersion, command: started } = context;
  const { version, commit } = await readBuild(packageRoot);
  const program = new Command('catalog')
    .description('Operate the Catalog Lookup Service.')
    .version(
      `catalog ${version} (${commit && `commit ${commit}, `}Node.js ${nodeVersion})`,
      '-V, --version',
      'print the version',
    )
    .helpOption('-h, --help', 'print help for a command')
    .helpCommand('help [command]', 'print help for a command')
    .configureHelp({
      // Nearly every command has options.
      subcommandTerm: (command) => `${command.name()} ${command.usage()}`.replaceAll(/ \[(?:options|command)\]/g, ''),
      minWidthToWrap: 20,
      boxWrap(text, width) {
        return Help.prototype.boxWrap.call(this, asStarted(text, started), width);
      },
    })
    .configureOutput({
      getOutHelpWidth: () => Math.min(stdout.columns ?? HELP_WIDTH, HELP_WIDTH),
      writeOut: (text) => void stdout.write(asStarted(text, started)),
      // The error of an argument repeats it, and it may be a key.
      writeErr: (text) => void stderr.write(asStarted(redactSecrets(printableLines(text)), started)),
      outputError: (text, write) => write(`catalog: ${text}`),
    })
    // Otherwise `stats` takes the options of `stats verify`.
    .enablePositionalOptions()
    .exitOverride();
  addExamples(program, ['catalog keys create --developer 1 --plan free']);
  const isAlone = name !== undefined && Object.hasOwn(COMMANDS, name);
  for (const [command, load] of Object.entries(COMMANDS)) {
    if (!isAlone || command === name) (await load())(program, context);
  }
  finish(program);
  return program;
}

/**
 * Ends the errors of a command and of all below it with the way to their help, and refuses options before a subcommand,
 * which would not get them.
 */
function finish(command: Command, path = command.name()): void {
  command.showHelpAfterError(`Run "${path} --help" for usage.`);
  command.hook('preSubcommand', (parent, subcommand) => {
    const given = parent.options.find((option) => parent.getOptionValueSource(option.attributeName()) === 'cli');
    if (given) parent.error(`error: option '${given.flags}' must come after '${subcommand.name()}'`);
  });
  for (const subcommand of command.commands) finish(subcommand, `${path} ${subcommand.name()}`);
}

/** Writes commands in a text the way the program was started: `catalog` may be another program here. */
function asStarted(text: string, command: string): string {
  return text.replaceAll(CALL, `${command} `);
}

/** @returns the text to print about an error; the stack where only a developer can help */
async function textOf(error: unknown): Promise<string> {
  if (error instanceof OperatorError) return withAdvice(error);
  if (error instanceof ConfigError) return error.message;
  const { DISK_FULL, INSUFFICIENT_PRIVILEGE, isDatabaseUnavailable, sentMessage, sqlState } =
    await import('../platform/postgres/errors.js');
  const state = sqlState(error);
  if (state === INSUFFICIENT_PRIVILEGE) {
    return `The role in DATABASE_URL may not do this: ${sentMessage(error)}. Run the command as the owner of the tables.`;
  }
  if (state === DISK_FULL) {
    return `The disk of PostgreSQL is full: ${sentMessage(error)}. Nothing was changed. Free space on it, then run the command again.`;
  }
  if (state !== '') return `The database rejected this: ${sentMessage(error)} (SQLSTATE ${state})`;
  if (isDatabaseUnavailable(error)) {
    return `The database cannot be reached (${(error as Error).message}). Check DATABASE_URL and that PostgreSQL is running.`;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
