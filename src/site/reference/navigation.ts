import type { Heading } from '../layout/markdown.js';
import type { LinkGroup } from '../layout/with-sidebar.js';
import { operationsOf, tagsOf, type Contract } from './contract.js';

/** @returns the links to the sections of the reference @param headings - of the introduction */
export function linkGroups(contract: Contract, headings: readonly Heading[]): readonly LinkGroup[] {
  const operations = operationsOf(contract);
  return [
    {
      title: 'Basics',
      links: [['#introduction', 'Introduction'], ...headings.map(({ id, text }) => [`#${id}`, text] as const)],
    },
    ...tagsOf(contract).groups.map(({ name }) => ({
      title: name,
      links: operations
        .filter(({ tags }) => tags.includes(name))
        .map(({ operationId, summary }) => [`#${operationId}`, summary] as const),
    })),
    {
      title: 'Details',
      links: [
        ['#security', 'Security schemes'],
        ['#responses', 'Shared responses'],
        ['#headers', 'Response headers'],
        ['#schemas', 'Schemas'],
        ['#sdks', 'SDKs and downloads'],
      ],
    },
  ];
}
