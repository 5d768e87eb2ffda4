-- The health of a Foo for Argo CD. README.md explains how to install it.
--
-- A status counts only if it describes the newest spec: its observedGeneration and the
-- condition's must equal metadata.generation.

local function progressing(message)
  return {status = "Progressing", message = message}
end

local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local ready = conditions.Ready
if ready == nil then
  return progressing("Waiting for the controller")
end
local generation = obj.metadata.generation
if ready.reason == "Pending" then
  return progressing(ready.message)
end
if status.observedGeneration ~= generation or ready.observedGeneration ~= generation then
  return progressing("Waiting for the controller to see the newest spec")
end
if conditions.Suspended ~= nil and conditions.Suspended.status == "True" then
  return {status = "Suspended", message = ready.message}
end
if ready.status == "True" then
  return {status = "Healthy", message = ready.message}
end
-- Nothing will happen until someone acts.
if conditions.Stalled ~= nil and conditions.Stalled.status == "True" then
  return {status = "Degraded", message = ready.message}
end
return progressing(ready.message)
