import { writeFile } from 'node:fs/promises';
import { Session } from 'node:inspector/promises';

// Loaded into a server before its own code. It obeys messages, and reports each as done. 'start' begins a CPU profile. A
// file's name ends the profile and writes it there. 'collect' collects garbage. Without a message it costs nothing.

/** Between two samples, in microseconds. */
const INTERVAL_US = 250;

const session = new Session();

async function obey(message: string): Promise<void> {
  if (message === 'start') {
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
    await session.post('Profiler.start');
  } else if (message === 'collect') {
    session.connect();
    await session.post('HeapProfiler.collectGarbage');
    session.disconnect();
  } else {
    const { profile } = await session.post('Profiler.stop');
    session.disconnect();
    await writeFile(message, JSON.stringify(profile));
  }
  process.send?.('done');
}

process.on('message', (message: string) => void obey(message));
// The server may end although this listens.
process.channel?.unref();
