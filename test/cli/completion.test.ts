import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { programCommands, runCommand, type ProgramCommand } from '../support/programs/command.js';
import { skipWithout } from '../support/programs/skip.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Shell = (typeof SHELLS)[number];

/** Completes the last of the words in bash, and prints what it offers. */
const COMPLETE_IN_BASH = `
source "$0"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
compopt() { printf '<files>\\n'; }
_catalog
printf '%s\\n' "\${COMPREPLY[@]}"`;

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

  function bash(...words: readonly string[]): string[] {
    return lines('bash', '--norc', '-c', COMPLETE_IN_BASH, script('bash'), 'catalog', ...words);
  }

  function fish(line: string): string[] {
    const found = lines('fish', '--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', script('fish'), line);
    return found.map((offer) => offer.split('\t')[0] ?? '');
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
    for (const each of commands) {
      const { options, subcommands } = offersOf(each);
      const path = each.name.split(' ');
      assert.ok(bash(...path).includes(path.at(-1) ?? ''), each.name);
      assert.deepEqual(bash(...path, '--').sort(), options.sort(), each.name);
      const offered = bash(...path, '');
      for (const subcommand of subcommands) assert.ok(offered.includes(subcommand), `${each.name} ${subcommand}`);
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
    it(`bash completes ${what}`, () => assert.deepEqual(bash(...words), offered));
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
    for (const each of commands) {
      const { options, subcommands } = offersOf(each);
      assert.ok(fish(`catalog ${each.name}`).includes(each.name.split(' ').at(-1) ?? ''), each.name);
      const offered = [...fish(`catalog ${each.name} `), ...fish(`catalog ${each.name} --`)];
      for (const offer of [...options, ...subcommands]) assert.ok(offered.includes(offer), `${each.name} ${offer}`);
    }
    assert.deepEqual(fish('catalog import --kind ').sort(), ['collections', 'people', 'titles']);
    assert.ok(fish('catalog import cata').includes('catalog.fish'));
    assert.deepEqual(fish('catalog keys create --developer '), []);
  });

  it('another shell is refused', async () => {
    const { code, stderr } = await runCommand(['completion', 'tcsh'], {});
    assert.equal(code, 2);
    assert.match(stderr, /Allowed choices are bash, zsh, fish/);
  });
});
