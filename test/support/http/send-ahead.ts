import { connect } from 'node:net';
import { GIVE_UP_MS } from '../eventually.js';

/** The most unanswered requests of a connection. */
const AHEAD = 16;

/**
 * Sends requests on one connection, as many ahead of their answers as a server takes.
 *
 * @param requests - whole ones, without a body
 * @returns the statuses of the answers, in order
 */
export function sendAhead(url: string, requests: readonly string[]): Promise<string[]> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let text = '';
  let sent = 0;
  const statuses = (): string[] => Array.from(text.matchAll(/HTTP\/1\.1 (\d{3}) /g), ([, status = '']) => status);
  const sendRound = (): void => {
    socket.write(requests.slice(sent, sent + AHEAD).join(''));
    sent = Math.min(sent + AHEAD, requests.length);
  };
  return new Promise((resolve, reject) => {
    socket.setTimeout(GIVE_UP_MS, () => socket.destroy(new Error('the server does not answer')));
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      if (statuses().length < sent) return;
      if (sent < requests.length) sendRound();
      else socket.end();
    });
    socket.on('error', (cause) =>
      reject(new Error(`after ${statuses().length} of ${requests.length} answers`, { cause })),
    );
    socket.on('close', () => {
      const answers = statuses();
      if (answers.length === requests.length) resolve(answers);
      else reject(new Error(`${answers.length} answers for ${requests.length} requests`));
    });
    sendRound();
  });
}
