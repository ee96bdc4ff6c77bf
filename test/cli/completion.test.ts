import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { programCommands, runCommand, type ProgramCommand } from '../support/programs/command.js';
import { skipWithout } from '../support/programs/skip.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Shell = (typeof SHELLS)[number];

/** Ends a list of words among the arguments of a shell, and a list of offers in its output. */
const END = ';';

/** Completes the last word of each list in bash, and prints what it offers. */
const COMPLETE_IN_BASH = `
source "$0"
compopt() { printf '<files>\\n'; }
COMP_WORDS=()
for word; do
  if [[ $word != '${END}' ]]; then COMP_WORDS+=("$word"); continue; fi
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _catalog
  printf '%s\\n' "\${COMPREPLY[@]}" '${END}'
  COMP_WORDS=()
done`;

/** Completes each argument in fish, and prints what it offers. */
const COMPLETE_IN_FISH = `
source $argv[1]
for line in $argv[2..]
  complete -C $line
  echo '${END}'
end`;

describe('the completion of commands', () => {
  let folder: string;
  let commands: readonly ProgramCommand[];

  before(async () => {
    folder = await temporaryFolder();
    commands = await programCommands();
    for (const shell of SHELLS) {
      const { code, stdout } = await runCommand(['completion', shell], {});
      assert.equal(code, 0);
      await writeFile(script(shell), stdout);
    }
  });

  function script(shell: Shell): string {
    return join(folder, `catalog.${shell}`);
  }

  /** Runs a shell without the files of its user. @returns the lines that it prints */
  function lines(shell: Shell, ...args: readonly string[]): string[] {
    const { status, stdout, stderr } = spawnSync(shell, args, {
      encoding: 'utf8',
      cwd: folder,
      env: { ...process.env, HOME: folder },
    });
    assert.deepEqual({ status, stderr }, { status: 0, stderr: '' }, args.at(-1));
    return stdout.split('\n').filter(Boolean);
  }

  /** Completes lists of words in one shell. @returns what is offered for each */
  function bash(...lists: readonly (readonly string[])[]): string[][] {
    const args = lists.flatMap((words) => ['catalog', ...words, END]);
    return offersIn(lines('bash', '--norc', '-c', COMPLETE_IN_BASH, script('bash'), ...args));
  }

  /** Completes texts in one shell. @returns what is offered for each, without the descriptions */
  function fish(...texts: readonly string[]): string[][] {
    const found = lines('fish', '--no-config', '-c', COMPLETE_IN_FISH, script('fish'), ...texts);
    return offersIn(found.map((offer) => offer.split('\t')[0] ?? ''));
  }

  function offersIn(printed: readonly string[]): string[][] {
    const lists: string[][] = [[]];
    for (const line of printed) {
      if (line === END) lists.push([]);
      else lists.at(-1)?.push(line);
    }
    return lists.slice(0, -1);
  }

  /** What each command offers for a word that begins with `--`, and otherwise. */
  function offersOf({ command }: ProgramCommand): { options: string[]; subcommands: string[] } {
    const help = command.createHelp();
    return {
      options: help.visibleOptions(command).map(({ long }) => long ?? ''),
      subcommands: command.commands.map((subcommand) => subcommand.name()),
    };
  }

  for (const shell of SHELLS) {
    it(`the script for ${shell} has the syntax of ${shell}`, function () {
      if (spawnSync(shell, ['-c', ':']).status !== 0) skipWithout(shell, this);
      lines(shell, '-n', script(shell));
    });
  }

  it('bash completes every command, and the options of each', () => {
    const found = bash(
      ...commands.flatMap(({ name }) => [name.split(' '), `${name} --`.split(' '), `${name} `.split(' ')]),
    );
    for (const [i, each] of commands.entries()) {
      const { options, subcommands } = offersOf(each);
      const [names, flags, further] = found.slice(3 * i, 3 * i + 3);
      assert.ok(names?.includes(each.name.split(' ').at(-1) ?? ''), each.name);
      assert.deepEqual(flags?.sort(), options.sort(), each.name);
      for (const subcommand of subcommands) assert.ok(further?.includes(subcommand), `${each.name} ${subcommand}`);
    }
  });

  for (const [what, words, offered] of [
    ['the beginning of a command', ['ex'], ['export']],
    ['the value of an option', ['import', 'x.csv', '--kind', ''], ['titles', 'people', 'collections']],
    ['the beginning of a value', ['import', '--kind', 'p'], ['people']],
    ['a value after an equals sign', ['import', '--kind', '='], ['titles', 'people', 'collections']],
    ['the beginning of a value after an equals sign', ['import', '--kind', '=', 't'], ['titles']],
    ['the argument of a command', ['completion', ''], ['bash', 'zsh', 'fish']],
    ['a file', ['import', 'ti'], ['<files>']],
    ['the file of an option', ['follow', '--state', ''], ['<files>']],
    ['no option in place of an argument', ['keys', 'revoke', ''], []],
    ['an option before an argument', ['keys', 'revoke', '--j'], ['--json']],
    ['an option of a command without arguments', ['stats', 'verify', '--r'], ['--repair']],
    ['a value that only its owner can know', ['keys', 'create', '--developer', ''], []],
    [
      'a command after the value of an option that has its name',
      ['keys', 'list', '--developer', 'create', '--j'],
      ['--json'],
    ],
  ] as const) {
    it(`bash completes ${what}`, () => assert.deepEqual(bash(words), [offered]));
  }

  it('zsh has a function for every command', function () {
    if (spawnSync('zsh', ['-c', ':']).status !== 0) skipWithout('zsh', this);
    const defined = lines(
      'zsh',
      '-f',
      '-c',
      'compdef() { print "$@" }; source $0; print -l ${(k)functions}',
      script('zsh'),
    );
    assert.ok(defined.includes('_catalog catalog'));
    for (const { name } of commands) assert.ok(defined.includes(`_catalog_${name.replaceAll(' ', '_')}`), name);
  });

  it('fish completes every command, and the options of each', function () {
    if (spawnSync('fish', ['-c', ':']).status !== 0) skipWithout('fish', this);
    const found = fish(...commands.flatMap(({ name }) => ['', ' ', ' --'].map((end) => `catalog ${name}${end}`)));
    for (const [i, each] of commands.entries()) {
      const { options, subcommands } = offersOf(each);
      const [names, ...offered] = found.slice(3 * i, 3 * i + 3);
      assert.ok(names?.includes(each.name.split(' ').at(-1) ?? ''), each.name);
      for (const offer of [...options, ...subcommands]) {
        assert.ok(offered.flat().includes(offer), `${each.name} ${offer}`);
      }
    }
    const [kinds, files, ids] = fish(
      'catalog import --kind ',
      'catalog import cata',
      'catalog keys create --developer ',
    );
    assert.deepEqual(kinds?.sort(), ['collections', 'people', 'titles']);
    assert.ok(files?.includes('catalog.fish'));
    assert.deepEqual(ids, []);
  });

  it('another shell is refused', async () => {
    const { code, stderr } = await runCommand(['completion', 'tcsh'], {});
    assert.equal(code, 2);
    assert.match(stderr, /Allowed choices are bash, zsh, fish/);
  });
});
