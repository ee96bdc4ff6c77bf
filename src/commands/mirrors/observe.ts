import type { Observation, Observe } from '../../client/observation.js';
import { showPosition } from '../../client/client.js';
import { OperatorError, withAdvice } from '../../errors.js';
import { countOf, formatCount } from '../../platform/text/count.js';
import type { ProgressDisplay } from '../output/progress-display.js';

/** Reports what is observed of a mirror: as lines and, for progress, as a bar. */
export function reporter(display: ProgressDisplay, baseUrl: string): Observe {
  let comparison: string | undefined;
  return (observation) => {
    const { kind } = observation;
    const line = lineOf(observation, baseUrl);
    if (kind === 'progress') display.update(observation.progress);
    if (kind === 'following') display.stop();
    // A mirror looks for new copies again and again.
    const isComparison = kind === 'compared' || kind === 'comparison-failed';
    if (line !== undefined && !(isComparison && line === comparison)) display.printLine(line);
    if (isComparison) comparison = line;
  };
}

/** @returns undefined for what is not reported as a line */
function lineOf(observation: Observation, baseUrl: string): string | undefined {
  switch (observation.kind) {
    case 'retrying':
      return `${withAdvice(observation.failure)} Retrying in ${Math.ceil(observation.waitMs / 1000)} s.`;
    case 'loading':
      if (observation.copyOf !== undefined) return undefined;
      return `No copy is published at ${observation.copiesUrl}/. Reading the whole feed instead.`;
    case 'loaded': {
      const { copyOf, counts } = observation;
      const parts = Object.entries(counts).map(([what, count]) => `${formatCount(count)} ${what}`);
      return `Loaded ${copyOf === undefined ? 'the whole feed' : `the copy of ${copyOf}`}: ${parts.join(', ')}.`;
    }
    case 'following':
      return `Following ${baseUrl} from ${showPosition(observation.position)}.`;
    case 'position-refused':
      return `The feed no longer accepts the position ${showPosition(observation.position)}. Loading the newest copy.`;
    case 'feed-replaced':
      return `${observation.error.message} Loading the newest copy.`;
    case 'compared': {
      const { verified, isNew } = observation;
      const [how, when] = isNew
        ? ['Compared', '']
        : ['Already compared', `, at ${new Date(verified.at).toISOString()}`];
      const result = verified.differences === 0 ? 'equal' : differs(verified.differences);
      return `${how} with the copy of ${verified.copyOf}${when}: ${result}.`;
    }
    case 'comparison-failed': {
      const { error } = observation;
      const reason = error instanceof OperatorError ? withAdvice(error) : `${error.message}.`;
      return `The comparison with the newest copy failed: ${reason}`;
    }
    default:
      return undefined;
  }
}

/** @returns a clause about a number of rows */
export function differs(rows: number): string {
  return `${countOf(rows, 'row')} ${rows === 1 ? 'differs' : 'differ'}`;
}
