import { styleText } from 'node:util';
import { printable } from '../../platform/text/plain-text.js';

type Style = Parameters<typeof styleText>[0];

/** The numbers of pino's levels, with their names for people. */
const LEVELS: Readonly<Record<number, readonly [name: string, style: Style]>> = {
  10: ['trace', 'gray'],
  20: ['debug', 'gray'],
  30: ['info', 'green'],
  40: ['warn', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', 'red'],
};

/** The most elements of a list that are shown. */
const LONG_LIST = 5;

/** An error in the log, as the log describes it. */
interface LoggedError {
  readonly message?: string;
  readonly stack?: string;
  readonly cause?: LoggedError;
}

/** A line of the log. The members after `msg` are those of a request. */
interface Entry {
  readonly time: string;
  readonly level: number;
  readonly msg?: string;
  readonly err?: LoggedError;
  readonly pid?: number;
  readonly method?: string;
  readonly url?: string;
  readonly status?: number;
  readonly duration_ms?: number;
  readonly key_prefix?: string;
  readonly request_id?: string;
  readonly operation?: string;
  readonly aborted?: boolean;
}

/**
 * Makes lines of the log readable for people. The stack of an error follows its line if the entry is an error too.
 *
 * @returns a function from a line of JSON to text, each with its line end
 */
export function textFormatter(hasColors: boolean): (line: string) => string {
  const paint = (style: Style, text: string): string =>
    hasColors ? styleText(style, text, { validateStream: false }) : text;

  return (line) => {
    const { time, level, msg, err, pid: _, ...members } = JSON.parse(line) as Entry;
    const [name, style] = LEVELS[level] ?? [String(level), 'gray'];
    const parts = [paint('gray', localTime(time)), paint(style, name.padEnd(5))];
    if (msg === 'request') parts.push(...describeRequest(members, paint));
    else parts.push(printable(msg ?? ''), ...list(members, paint));
    if (err !== undefined) parts.push(paint('red', messageOf(err)));
    const stack = err?.stack !== undefined && level >= 50 ? (err.stack.match(/^ {4}at .*$/gm) ?? []) : [];
    return [parts.join('  '), ...stack.map((frame) => paint('gray', printable(frame)))]
      .map((text) => `${text}\n`)
      .join('');
  };
}

type Members = Omit<Entry, 'time' | 'level' | 'msg' | 'err' | 'pid'>;

function describeRequest(
  { method = '', url = '', status, duration_ms: duration = 0, key_prefix: prefix, aborted, ...rest }: Members,
  paint: (style: Style, text: string) => string,
): string[] {
  const { request_id: id, operation: _, ...others } = rest;
  const end = status === undefined ? paint('yellow', '---') : paint(styleOf(status), String(status));
  return [
    end,
    `${method} ${printable(url)}`,
    paint('gray', `${duration < 10 ? duration.toFixed(1) : Math.round(duration)} ms`),
    ...list(
      {
        ...(prefix !== undefined && { key: prefix }),
        ...(aborted && { aborted }),
        ...others,
        request_id: id,
      },
      paint,
    ),
  ];
}

function styleOf(status: number): Style {
  if (status >= 500) return 'red';
  return status >= 400 ? 'yellow' : 'green';
}

/** Members as `name=value`, in one part. Of a long list, such as all migrations at a first start, only the length is shown. */
function list(members: object, paint: (style: Style, text: string) => string): string[] {
  const pairs = Object.entries(members).flatMap(([name, value]: [string, unknown]) => {
    if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return [];
    const shown = Array.isArray(value) && value.length > LONG_LIST ? value.length : value;
    return [`${paint('gray', `${name}=`)}${printable(typeof shown === 'string' ? shown : JSON.stringify(shown))}`];
  });
  return pairs.length === 0 ? [] : [pairs.join(' ')];
}

function messageOf({ message = '', cause }: LoggedError): string {
  // Some errors repeat the message of their cause.
  const isRepeated = cause?.message === undefined || message.endsWith(cause.message);
  return isRepeated ? printable(message) : `${printable(message)}: ${messageOf(cause)}`;
}

/** The time of day on this machine. */
function localTime(time: string): string {
  const date = new Date(time);
  const [hours, minutes, seconds] = [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) =>
    String(part).padStart(2, '0'),
  );
  return `${hours}:${minutes}:${seconds}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}
