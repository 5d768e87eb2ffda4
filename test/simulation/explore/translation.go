// SPDX-License-Identifier: Apache-2.0

// What the model and a real API server call the same thing: UIDs, resourceVersions, and the
// namespace. They are paired when they are first seen, and must stay pairs.

package explore

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/test/footest"
)

// translation is between the model and the server, for one path.
type translation struct {
	// namespace is that of the path on the server.
	namespace string
	// uids and versions are the server's by the model's, modelUIDs and modelVersions the
	// reverse.
	uids, modelUIDs         map[types.UID]types.UID
	versions, modelVersions map[string]string
	// newest is the server's newest version, and newestModel the model's.
	newest, newestModel uint64
}

func newTranslation(namespace string) *translation {
	return &translation{
		namespace: namespace, uids: map[types.UID]types.UID{}, modelUIDs: map[types.UID]types.UID{},
		versions: map[string]string{}, modelVersions: map[string]string{},
	}
}

// toServer returns what a request of the model sends, as it is sent to the server. What the
// model has from nowhere is an error.
func (t *translation) toServer(sent runtime.Object) (runtime.Object, error) {
	if sent == nil {
		return nil, nil
	}
	sent = sent.DeepCopyObject()
	if options, ok := sent.(*metav1.DeleteOptions); ok {
		return options, t.optionsToServer(options)
	}
	object, err := metaOf(sent), error(nil)
	object.SetNamespace(t.namespace)
	// The server keeps its own, of which only this client knows no value.
	object.SetDeletionTimestamp(nil)
	if uid := object.GetUID(); uid != "" {
		if uid, err = t.uid(uid); err != nil {
			return nil, err
		}
		object.SetUID(uid)
	}
	if version := object.GetResourceVersion(); version != "" {
		if version, err = t.version(version); err != nil {
			return nil, err
		}
		object.SetResourceVersion(version)
	}
	owners := object.GetOwnerReferences()
	for i := range owners {
		if owners[i].UID, err = t.uid(owners[i].UID); err != nil {
			return nil, err
		}
	}
	object.SetOwnerReferences(owners)
	return object, nil
}

func (t *translation) optionsToServer(options *metav1.DeleteOptions) (err error) {
	only := options.Preconditions
	if only == nil {
		return nil
	}
	if only.UID != nil {
		if *only.UID, err = t.uid(*only.UID); err != nil {
			return err
		}
	}
	if only.ResourceVersion != nil {
		*only.ResourceVersion, err = t.version(*only.ResourceVersion)
	}
	return err
}

func (t *translation) uid(model types.UID) (types.UID, error) {
	uid, known := t.uids[model]
	if !known {
		return "", fmt.Errorf("the model sends the UID %q, which no object ever had", model)
	}
	return uid, nil
}

func (t *translation) version(model string) (string, error) {
	version, known := t.versions[model]
	if !known {
		return "", fmt.Errorf("the model sends the resourceVersion %q, which no object ever had", model)
	}
	return version, nil
}

// toModel returns an object of the server in the model's terms. A UID and a version that
// are new on both sides become a pair; others stay as they are, and so differ.
func (t *translation) toModel(object, expected footest.Object) (footest.Object, error) {
	object = copyOf(object)
	if object.GetNamespace() == t.namespace {
		object.SetNamespace(footest.Namespace)
	}
	if err := t.learn(object, expected); err != nil {
		return nil, err
	}
	if uid, known := t.modelUIDs[object.GetUID()]; known {
		object.SetUID(uid)
	}
	if version, known := t.modelVersions[object.GetResourceVersion()]; known {
		object.SetResourceVersion(version)
	}
	owners := object.GetOwnerReferences()
	for i := range owners {
		if uid, known := t.modelUIDs[owners[i].UID]; known {
			owners[i].UID = uid
		}
	}
	object.SetOwnerReferences(owners)
	if object.GetDeletionTimestamp() != nil {
		object.SetDeletionTimestamp(&metav1.Time{Time: epoch})
	}
	object.SetManagedFields(nil)
	object.SetCreationTimestamp(metav1.Time{})
	return object, nil
}

// learn pairs what is new.
func (t *translation) learn(object, expected footest.Object) error {
	uid, model := object.GetUID(), expected.GetUID()
	if t.uids[model] == "" && t.modelUIDs[uid] == "" {
		t.uids[model], t.modelUIDs[uid] = uid, model
	}
	version, modelVersion := object.GetResourceVersion(), expected.GetResourceVersion()
	if t.versions[modelVersion] != "" || t.modelVersions[version] != "" {
		return nil
	}
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return fmt.Errorf("the resourceVersion of %s is no number: %w", object.GetName(), err)
	}
	modelNumber, err := strconv.ParseUint(modelVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("the model's resourceVersion of %s is no number: %w", object.GetName(), err)
	}
	if number > t.newest && modelNumber > t.newestModel {
		t.newest, t.newestModel = number, modelNumber
		t.versions[modelVersion], t.modelVersions[version] = version, modelVersion
	}
	return nil
}
