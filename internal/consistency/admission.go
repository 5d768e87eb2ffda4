/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package consistency

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/keyed"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// overruled remembers, by Foo, the Deployments that the API server stored
// otherwise than they were sent. An admission webhook does that: one that puts
// a mirror's name before each image, for example. To send the same again would
// get the same answer, at each resync and for ever.
//
// A ruling stands until somebody changes what the Foo or the Deployment asks
// for, and until the controller starts again.
type AdmissionMutations struct {
	keyed.Map[mutation]
}

// ruling is the state of both objects in which an update is of no use.
type mutation struct {
	foo, deployment                     types.UID
	fooGeneration, deploymentGeneration int64
	// differs says in what the API server overruled the Foo. After a restore of
	// etcd a generation can come a second time, with another spec.
	differs string
}

func mutationOf(foo *samplev1alpha1.Foo, deployment *appsv1.Deployment, differs string) mutation {
	return mutation{
		foo: foo.UID, fooGeneration: foo.Generation,
		deployment: deployment.UID, deploymentGeneration: deployment.Generation,
		differs: differs,
	}
}

// learn takes note of in what a Deployment differs, as the API server stored it,
// from what the Foo asks for; "" if in nothing.
func (o *AdmissionMutations) Observe(foo *samplev1alpha1.Foo, stored *appsv1.Deployment, differs string) {
	if differs != "" {
		o.Set(cache.MetaObjectToName(foo), mutationOf(foo, stored, differs))
	} else {
		o.Delete(cache.MetaObjectToName(foo))
	}
}

// stands reports whether to update a Foo's Deployment is of no use.
func (o *AdmissionMutations) WouldRecur(foo *samplev1alpha1.Foo, deployment *appsv1.Deployment, differs string) bool {
	known, ok := o.Get(cache.MetaObjectToName(foo))
	return ok && known == mutationOf(foo, deployment, differs)
}
