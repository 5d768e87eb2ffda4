// SPDX-License-Identifier: Apache-2.0

// An API server that knows only what the page reads: forty Foos in many states, with the objects below them. It serves
// lists, by namespace and by name, and the controller's Lease.

'use strict';

const http = require('http');

const longest = (word) => `${word}-`.padEnd(62, 'abcdefghij-') + 'z'; // 63 characters, as many as a label may have

// The Foos that the check looks at: one with long names, one with a timeline, and the last in the list.
const long = { namespace: longest('namespace'), name: longest('foo') };
const example = { namespace: 'default', name: 'example-foo' };
const last = { namespace: 'team-e', name: 'web-39' };

const ago = (seconds) => new Date(Date.now() - seconds * 1000).toISOString().replace(/\.\d+/, '');
const metadata = ({ namespace, name }, more) => ({ namespace, name, uid: `${namespace}/${name}`, creationTimestamp: ago(30 * 86400), generation: 1, resourceVersion: '7', ...more });
const condition = (type, status, reason, message) => ({ type, status, reason, message, lastTransitionTime: ago(90), observedGeneration: 1 });

const group = 'samplecontroller.k8s.io/v1alpha1';

// foo returns a Foo with a condition Ready, if a reason is given.
function foo(of, status, reason, message, more) {
  const conditions = reason ? [condition('Ready', status, reason, message)] : [];
  return { apiVersion: group, kind: 'Foo', metadata: metadata(of, more), spec: { deploymentName: of.name, replicas: 3 }, status: { observedGeneration: 1, availableReplicas: 1, conditions } };
}

// below returns the metadata of an object that another controls.
function below(owner, name) {
  const { namespace, uid } = owner.metadata;
  const reference = { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.metadata.name, uid, controller: true, blockOwnerDeletion: true };
  return metadata({ namespace, name }, { uid: `${uid}/${name}`, ownerReferences: [reference] });
}

// tree returns a Foo's Deployment, ReplicaSet and Pods. A quota rejects the third Pod, and the second can't get its image.
function tree(owner) {
  const quota = 'pods "shop-2" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2';
  const failed = { conditions: [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: quota }], availableReplicas: 1, replicas: 2 };
  const template = { metadata: { labels: { app: 'nginx' } }, spec: { containers: [{ name: 'nginx', image: 'nginx:0' }] } };
  const spec = { replicas: 2, selector: { matchLabels: { app: 'nginx' } }, template };
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: below(owner, owner.metadata.name), spec: { ...spec, paused: true }, status: failed };
  const set = { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata: below(deployment, `${owner.metadata.name}-5d4f8c7b9`), spec, status: failed };
  const waiting = { name: 'nginx', image: 'nginx:0', state: { waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image "nginx:0"' } } };
  const pods = ['x2x9k', 'b7v4n'].map((suffix, i) => ({
    apiVersion: 'v1', kind: 'Pod', metadata: below(set, `${set.metadata.name}-${suffix}`), spec: {},
    status: { phase: i ? 'Pending' : 'Running', containerStatuses: i ? [waiting] : [] },
  }));
  const events = [[owner, 'Warning', 'DeploymentFailed', quota], [set, 'Warning', 'FailedCreate', quota], [deployment, 'Normal', 'ScalingReplicaSet', 'Scaled up from 0 to 3']]
    .map(([about, type, reason, message], i) => ({
      apiVersion: 'v1', kind: 'Event', metadata: metadata({ namespace: owner.metadata.namespace, name: `${owner.metadata.name}.${i}` }), type, reason, message, lastTimestamp: ago(60 * i + 5),
      involvedObject: { kind: about.kind, namespace: about.metadata.namespace, name: about.metadata.name, uid: about.metadata.uid },
    }));
  return { deployments: [deployment], replicasets: [set], pods, events };
}

// lists returns the objects of each resource.
function lists() {
  const failed = 'Deployment cannot create its Pods: pods "shop-2" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2';
  const foos = [
    foo(example, 'True', 'Available', 'Deployment "example-foo" has 3 of 3 Pods available'),
    foo(long, 'False', 'DeploymentFailed', failed, { generation: 2 }),
    foo({ namespace: 'team-a', name: 'docs' }, 'Unknown', 'Progressing', 'the Deployment is paused'),
    foo({ namespace: 'team-a', name: 'new' }),
    foo({ namespace: 'team-a', name: 'old' }, 'False', 'Terminating', 'it is being deleted', { deletionTimestamp: ago(300), finalizers: ['example.com/backup'] }),
  ];
  while (foos.length < 40) {
    foos.push(foo({ namespace: `team-${'bcde'[foos.length % 4]}`, name: `web-${foos.length}` }, 'True', 'Available', 'the Deployment has 3 of 3 Pods available'));
  }
  const found = { foos, deployments: [], replicasets: [], pods: [], events: [] };
  for (const owner of foos.slice(0, 2)) {
    for (const [resource, objects] of Object.entries(tree(owner))) {
      found[resource].push(...objects);
    }
  }
  return found;
}

const lease = () => ({
  apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: metadata({ namespace: 'sample-controller', name: 'sample-controller' }),
  spec: { holderIdentity: 'sample-controller-6c9f7d', leaseDurationSeconds: 15, renewTime: new Date().toISOString().replace('Z', '000Z') },
});

// start serves them on a free port of 127.0.0.1.
function start() {
  const found = lists();
  const answer = (request, response) => {
    const url = new URL(request.url, 'http://127.0.0.1');
    const [, namespace, resource] = url.pathname.match(/\/v[^/]+(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/[^/]+)?$/) ?? [];
    const name = url.searchParams.get('fieldSelector')?.replace('metadata.name=', '');
    const items = found[resource]?.filter(({ metadata: m }) => (!namespace || m.namespace === namespace) && (!name || m.name === name));
    const body = resource === 'leases' ? lease() : items && { apiVersion: items[0]?.apiVersion ?? 'v1', kind: 'List', metadata: { resourceVersion: '9' }, items };
    response.writeHead(body ? 200 : 404, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(body ?? { apiVersion: 'v1', kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404, message: request.url }));
  };
  return new Promise((resolve) => {
    const server = http.createServer(answer).listen(0, '127.0.0.1', () => resolve(server));
  });
}

module.exports = { start, long, example, last };
