import { readFile } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Config } from '../config/settings.js';
import type { Tracing } from '../platform/telemetry/tracing.js';

/**
 * Prepares to record traces, if the settings name a receiver for them. Only then OpenTelemetry is loaded. The receiver,
 * which may be down, is not contacted.
 *
 * @param packageRoot - the folder of this package's package.json
 */
export async function openTracing(config: Config, packageRoot: string, log: Logger): Promise<Tracing | undefined> {
  if (config.traceEndpoint === undefined) return undefined;
  const { Tracing } = await import('../platform/telemetry/tracing.js');
  const { version } = JSON.parse(await readFile(`${packageRoot}/package.json`, 'utf8')) as { version: string };
  return new Tracing({
    endpoint: config.traceEndpoint,
    headers: config.traceHeaders ?? {},
    serviceName: config.traceServiceName,
    serviceVersion: version,
    sampler: config.traceSampler,
    ratio: config.traceRatio,
    onChange: (state, err) => {
      if (state === 'lost') log.warn({ err }, 'traces cannot be sent; their spans are dropped and counted');
      else log.info('traces are sent again');
    },
  });
}
