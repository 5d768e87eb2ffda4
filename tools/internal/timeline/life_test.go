// SPDX-License-Identifier: Apache-2.0

// The expected entries of the recorded log.

package timeline

// life returns the entries of testdata/life.log: panel, time in ms, actor, verb and
// object, and after < the cause.
func life() []string {
	return []string{
		"1: 0 devcluster-admin create Foo example-foo",
		"1: 17 sample-controller create Deployment example-foo < create Foo example-foo by devcluster-admin",
		"1: 31 sample-controller update Foo/status example-foo < create Foo example-foo by devcluster-admin",
		"1: 42 deployment-controller create ReplicaSet example-foo-694f5774b < create Deployment example-foo by sample-controller",
		"1: 59 deployment-controller update Deployment/status example-foo < create Deployment example-foo by sample-controller",
		"1: 66 deployment-controller update Deployment/status example-foo < create Deployment example-foo by sample-controller",
		"1: 78 replicaset-controller create Pod example-foo-694f5774b-sngkz < create ReplicaSet example-foo-694f5774b by deployment-controller",
		"1: 78 deployment-controller update Deployment/status example-foo < create Deployment example-foo by sample-controller",
		"1: 87 deployment-controller update Deployment/status example-foo < create Deployment example-foo by sample-controller",
		"1: 87 replicaset-controller update ReplicaSet/status example-foo-694f5774b < create ReplicaSet example-foo-694f5774b by deployment-controller",
		"1: 95 replicaset-controller update ReplicaSet/status example-foo-694f5774b < create ReplicaSet example-foo-694f5774b by deployment-controller",
		"1: 106 deployment-controller update Deployment/status example-foo < update ReplicaSet/status example-foo-694f5774b by replicaset-controller",
		"1: 110 kube-scheduler create Pod/binding example-foo-694f5774b-sngkz < create Pod example-foo-694f5774b-sngkz by replicaset-controller",
		"1: 132 kwok (as kubelet) patch Pod/status example-foo-694f5774b-sngkz < create Pod/binding example-foo-694f5774b-sngkz by kube-scheduler",
		"1: 139 replicaset-controller update ReplicaSet/status example-foo-694f5774b < patch Pod/status example-foo-694f5774b-sngkz by kwok (as kubelet)",
		"1: 145 deployment-controller update Deployment/status example-foo < update ReplicaSet/status example-foo-694f5774b by replicaset-controller",
		"1: 157 sample-controller update Foo/status example-foo < update Deployment/status example-foo by deployment-controller",
		"2: 0 devcluster-admin patch Foo/scale example-foo",
		"2: 13 sample-controller update Deployment example-foo < patch Foo/scale example-foo by devcluster-admin",
		"2: 28 deployment-controller update ReplicaSet example-foo-694f5774b < update Deployment example-foo by sample-controller",
		"2: 34 sample-controller update Foo/status example-foo < patch Foo/scale example-foo by devcluster-admin",
		"2: 44 replicaset-controller create Pod example-foo-694f5774b-k7wfr < update ReplicaSet example-foo-694f5774b by deployment-controller",
		"2: 53 deployment-controller update Deployment/status example-foo < update Deployment example-foo by sample-controller",
		"2: 56 kube-scheduler create Pod/binding example-foo-694f5774b-k7wfr < create Pod example-foo-694f5774b-k7wfr by replicaset-controller",
		"2: 58 replicaset-controller create Pod example-foo-694f5774b-pnt4n < update ReplicaSet example-foo-694f5774b by deployment-controller",
		"2: 66 deployment-controller update Deployment/status example-foo < update Deployment example-foo by sample-controller",
		"2: 87 kube-scheduler create Pod/binding example-foo-694f5774b-pnt4n < create Pod example-foo-694f5774b-pnt4n by replicaset-controller",
		"2: 88 replicaset-controller update ReplicaSet/status example-foo-694f5774b < create Pod/binding example-foo-694f5774b-pnt4n by kube-scheduler",
		"2: 93 kwok (as kubelet) patch Pod/status example-foo-694f5774b-k7wfr < create Pod/binding example-foo-694f5774b-k7wfr by kube-scheduler",
		"2: 112 kwok (as kubelet) patch Pod/status example-foo-694f5774b-pnt4n < create Pod/binding example-foo-694f5774b-pnt4n by kube-scheduler",
		"2: 120 replicaset-controller update ReplicaSet/status example-foo-694f5774b < patch Pod/status example-foo-694f5774b-pnt4n by kwok (as kubelet)",
		"2: 139 replicaset-controller update ReplicaSet/status example-foo-694f5774b < patch Pod/status example-foo-694f5774b-pnt4n by kwok (as kubelet)",
		"2: 144 deployment-controller update Deployment/status example-foo < update ReplicaSet/status example-foo-694f5774b by replicaset-controller",
		"2: 158 deployment-controller update Deployment/status example-foo < update ReplicaSet/status example-foo-694f5774b by replicaset-controller",
		"2: 206 sample-controller update Foo/status example-foo < update Deployment/status example-foo by deployment-controller",
		"3: 0 devcluster-admin delete Foo example-foo",
		"3: 11 garbage-collector delete Deployment example-foo < delete Foo example-foo by devcluster-admin",
		"3: 30 garbage-collector delete ReplicaSet example-foo-694f5774b < delete Deployment example-foo by garbage-collector",
		"3: 74 garbage-collector delete Pod example-foo-694f5774b-sngkz < delete ReplicaSet example-foo-694f5774b by garbage-collector",
		"3: 74 garbage-collector delete Pod example-foo-694f5774b-k7wfr < delete ReplicaSet example-foo-694f5774b by garbage-collector",
		"3: 108 garbage-collector delete Pod example-foo-694f5774b-pnt4n < delete ReplicaSet example-foo-694f5774b by garbage-collector",
		"3: 142 kwok (as kubelet) delete Pod example-foo-694f5774b-k7wfr < delete Pod example-foo-694f5774b-k7wfr by garbage-collector",
		"3: 142 kwok (as kubelet) delete Pod example-foo-694f5774b-sngkz < delete Pod example-foo-694f5774b-sngkz by garbage-collector",
		"3: 146 kwok (as kubelet) delete Pod example-foo-694f5774b-sngkz < delete Pod example-foo-694f5774b-sngkz by garbage-collector",
		"3: 146 kwok (as kubelet) delete Pod example-foo-694f5774b-k7wfr < delete Pod example-foo-694f5774b-k7wfr by garbage-collector",
		"3: 146 kwok (as kubelet) delete Pod example-foo-694f5774b-pnt4n < delete Pod example-foo-694f5774b-pnt4n by garbage-collector",
		"3: 153 kwok (as kubelet) delete Pod example-foo-694f5774b-pnt4n < delete Pod example-foo-694f5774b-pnt4n by garbage-collector",
	}
}
