// SPDX-License-Identifier: Apache-2.0

// The encoding of objects on their way between the clientsets and the API server: an id.

package wire

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// mediaType is the content type of ids.
const mediaType = "application/vnd.simulation"

// encoding holds the objects under way, by their ids. It is the negotiator of a REST
// client, and all of its encoders and decoders.
type encoding struct {
	mu   sync.Mutex
	last int
	sent map[int]runtime.Object
}

// send keeps an object until it is received, and returns its id. Nobody changes the object
// from then on.
func (w *encoding) send(object runtime.Object) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent == nil {
		w.sent = map[int]runtime.Object{}
	}
	w.last++
	w.sent[w.last] = object
	return strconv.AppendInt(nil, int64(w.last), 10)
}

// receive returns the object of an id, which has one reader.
func (w *encoding) receive(id []byte) runtime.Object {
	i, err := strconv.Atoi(string(id))
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	object, sent := w.sent[i]
	if !sent {
		panic(fmt.Sprintf("the object %d was not sent, or received before", i))
	}
	delete(w.sent, i)
	return object
}

// Encoder returns the encoder of each media type.
func (w *encoding) Encoder(string, map[string]string) (runtime.Encoder, error) { return w, nil }

// Decoder returns the decoder of each media type.
func (w *encoding) Decoder(string, map[string]string) (runtime.Decoder, error) { return w, nil }

// events reads and writes the events of watches, in which the objects are ids.
var events = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})

// StreamDecoder returns the decoders for watches.
func (w *encoding) StreamDecoder(string, map[string]string) (runtime.Decoder, runtime.Serializer, runtime.Framer, error) {
	return w, events, json.Framer, nil
}

// Encode sends a copy of an object.
func (w *encoding) Encode(object runtime.Object, to io.Writer) error {
	_, err := to.Write(w.send(object.DeepCopyObject()))
	return err
}

// Identifier is that of the encoder.
func (w *encoding) Identifier() runtime.Identifier { return mediaType }

// Decode receives an object, or the objects of a list.
func (w *encoding) Decode(id []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object := w.receive(id)
	list, isList := object.(*List)
	switch {
	case isList:
		accessor, err := meta.ListAccessor(into)
		if err != nil {
			return nil, nil, err
		}
		accessor.SetResourceVersion(list.ResourceVersion)
		return into, &schema.GroupVersionKind{}, meta.SetList(into, list.Items)
	case into == nil || reflect.TypeOf(into) != reflect.TypeOf(object):
		return object, &schema.GroupVersionKind{}, nil
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object).Elem())
	return into, &schema.GroupVersionKind{}, nil
}

// List is the answer to a list, whose type depends on the caller.
type List struct {
	metav1.TypeMeta

	Items           []runtime.Object
	ResourceVersion string
}

// DeepCopyObject returns the answer itself, which nobody changes.
func (l *List) DeepCopyObject() runtime.Object { return l }
