import type { VNode } from 'preact';
import { CodeBlock, Tabs } from './components.js';
import { samplesOf } from './samples.js';

interface SampleTabsProps {
  /** Unique in the page. */
  readonly name: string;
  readonly baseUrl: string;
  readonly target: string;
}

/** A call of the API in each language, of which one is shown. */
export function SampleTabs({ name, baseUrl, target }: SampleTabsProps): VNode {
  return (
    <Tabs
      name={name}
      legend="Language"
      tabs={samplesOf(baseUrl, target).map(({ language, code }) => ({
        label: language,
        content: <CodeBlock label={language} code={code} />,
      }))}
    />
  );
}
